//! lab
use simulator::validate::score::*;
use simulator::validate::*;
use std::path::Path;
use std::sync::Arc;
fn main() {
    let shared = Path::new("/work/shared");
    let dofit = std::env::args().nth(1).as_deref() == Some("fit");
    for name in [
        "quantum-atlas-3",
        "seagate-cheetah-9lp",
        "ibm-ultrastar-18es",
        "quantum-atlas-10k",
        "hp-c2247a",
        "hp-c3323a",
        "dec-rz26",
        "seagate-cheetah-15k5",
        "seagate-elite-st41601n",
    ] {
        if let Some(f) = std::env::args().nth(2) {
            if f != name {
                continue;
            }
        }
        let text = std::fs::read_to_string(format!("/work/main/drives/{name}.toml")).unwrap();
        let mut p = drive::Profile::parse(&text, name).unwrap();
        let dir = p.source.clone().unwrap();
        let file = measurement::trace_of(shared, &dir).unwrap();
        let samples = measurement::samples(&file, &p).unwrap();
        let ds = measurement::disksim(shared, &dir, &samples).unwrap();
        if dofit {
            let f = simulator::fit::fit(&p, &samples, || ());
            println!("{:?}", f.profile.buffer);
            println!(
                "fit: {} turns, phase {:?}, {} replays, period {}",
                f.angles,
                f.phase,
                f.replays,
                f.profile.spindle.period_ps()
            );
            for (n, c) in simulator::fit::electronics::TIMES {
                let mut q = f.profile.clone();
                let mut o = p.clone();
                println!("   {n}: {} -> {}", c(&mut o), c(&mut q));
            }
            p = f.profile;
        }
        let p = Arc::new(p);
        let own = replay(&p, &samples, Clock::Own);
        let meas = replay(&p, &samples, Clock::Tracked);
        let t: Vec<_> = own.iter().map(|r| r.service).collect();
        let tm: Vec<_> = meas.iter().map(|r| r.service).collect();
        let h = samples.len() / 2;
        let s = Score::of(&samples, &t);
        let s2 = Score::of(&samples[h..], &t[h..]);
        let sm = Score::of(&samples, &tm);
        let d = ds.as_ref().map(|d| Score::of(&samples, d));
        let d2 = ds.as_ref().map(|d| Score::of(&samples[h..], &d[h..]));
        let ph = clock::phase(&p.spindle, &samples, &meas);
        println!(
            "{name:24} ours {:.3} (r {:.3} w {:.3}) half {:.3} measclk {:.3} | ds {:.3} (r {:.3} w {:.3}) half {:.3} | mean {:.3}->{:.3} | med {:.3} half {:.3} ds {:.3} | R {:.2}",
            s.demerit,
            s.demerit_read,
            s.demerit_write,
            s2.demerit,
            sm.demerit,
            d.map_or(0., |d| d.demerit),
            d.map_or(0., |d| d.demerit_read),
            d.map_or(0., |d| d.demerit_write),
            d2.map_or(0., |d| d.demerit),
            s.measured_mean,
            s.simulated_mean,
            median_error(&samples, &tm).unwrap(),
            median_error(&samples[h..], &tm[h..]).unwrap(),
            ds.as_ref()
                .and_then(|d| median_error(&samples, d))
                .unwrap_or(0.),
            ph.concentration
        );
        if let Ok(out) = std::env::var("LAB_OUT") {
            let mut o = String::new();
            for (i, (s, r)) in samples.iter().zip(&own).enumerate() {
                let a = r.account;
                let m = &meas[i];
                o += &format!(
                    "{},{:?},{},{},{:.6},{:.6},{:.6},{:?},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:?}\n",
                    i,
                    s.direction,
                    s.extent.start().0,
                    s.extent.length().0,
                    s.service.as_millis_f64(),
                    r.service.as_millis_f64(),
                    ds.as_ref().map_or(0., |d| d[i].as_millis_f64()),
                    a.hit,
                    a.overhead.as_millis_f64(),
                    a.seek.as_millis_f64(),
                    a.rotation.as_millis_f64(),
                    a.transfer.as_millis_f64(),
                    a.bus.as_millis_f64(),
                    m.service.as_millis_f64(),
                    m.account.hit
                );
            }
            std::fs::write(format!("{out}/{name}.csv"), o).unwrap();
        }
    }
}

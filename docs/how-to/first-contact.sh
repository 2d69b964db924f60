# The commands of the page "First contact with a disk" (first-contact.md), in its order. The page includes the parts between
# the anchors. `cargo test -p headtime --test service first_contact` runs them on a loop device over an emulated drive.

# ANCHOR: names
disk=/dev/sdb                # `lsblk` lists them; better a name of /dev/disk/by-id, which stays
files=/srv                   # where its file system is mounted
backup=/mnt/other/srv.tar    # on another disk
volumes=/mnt/headtime        # an empty folder, in which the volume becomes a file
minutes=30                   # for the profile
seconds=3600                 # for each measurement
# ANCHOR_END: names

# ANCHOR: look
lsblk --output NAME,SIZE,ROTA,ZONED,TYPE,MOUNTPOINTS,MODEL "$disk"
headtime doctor "$disk"
# ANCHOR_END: look

# ANCHOR: back-up
tar --create --file "$backup" --directory "$files" .
# ANCHOR_END: back-up

# ANCHOR: before
fio --name=before --readonly --filename="$disk" --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=4 \
  --time_based --runtime="$seconds" --output=before.txt
# ANCHOR_END: before

# ANCHOR: adopt
headtime adopt "$disk" --minutes "$minutes" --output profile.toml
# ANCHOR_END: adopt

# ANCHOR: unmount
umount "$files"
headtime doctor "$disk"
# ANCHOR_END: unmount

# ANCHOR: init
mkdir --parents "$volumes"
headtime serve --init "$disk" --mount "$volumes" --belief profile.toml --out disk.toml
# ANCHOR_END: init

# ANCHOR: init-plain
headtime serve --init "$disk" --mount "$volumes" --out plain.toml
# ANCHOR_END: init-plain

# ANCHOR: check
headtime serve --check disk.toml
headtime doctor disk.toml
# ANCHOR_END: check

# ANCHOR: serve
headtime serve disk.toml
# ANCHOR_END: serve

# ANCHOR: mount
loop=$(losetup --find --show --direct-io=on --partscan "$volumes/disk")
mount "$loop" "$files"
tar --compare --file "$backup" --directory "$files"
# ANCHOR_END: mount

# ANCHOR: watch
headtime doctor
headtime ctl status
headtime top --once
# ANCHOR_END: watch

# ANCHOR: with
fio --name=with --readonly --filename="$loop" --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=4 \
  --time_based --runtime="$seconds" --output=with.txt
grep 'clat (' before.txt with.txt
# ANCHOR_END: with

# ANCHOR: scan
headtime scan disk --detach
headtime ctl tasks
# ANCHOR_END: scan

# ANCHOR: after-kill
umount "$files"
losetup --detach "$loop"
headtime doctor disk.toml
# ANCHOR_END: after-kill

# ANCHOR: mount-again
loop=$(losetup --find --show --direct-io=on --partscan "$volumes/disk")
mount "$loop" "$files"
# ANCHOR_END: mount-again

# ANCHOR: undo
umount "$files"
losetup --detach "$loop"
headtime ctl drain
# ANCHOR_END: undo

# ANCHOR: undone
mount "$disk" "$files"
tar --compare --file "$backup" --directory "$files"
rm disk.toml plain.toml profile.toml
rmdir "$volumes"
# ANCHOR_END: undone

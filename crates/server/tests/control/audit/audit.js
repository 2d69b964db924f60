// What a reader with weak eyes, or without a mouse, meets on the page. A content script, because the page allows no
// scripts but its own. The result is the attribute data-audit of the root.

const channels = (colour) => colour.match(/[\d.]+/g).map(Number);

// Relative luminance and contrast: WCAG 2.2, section 1.4.3 and its definitions.
function luminance([red, green, blue]) {
  const linear = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour.length === 3) return colour;
    if (colour[3] !== 0) throw new Error(`a translucent ground: ${at.className}`);
  }
  return [255, 255, 255];
}

const isShown = (element) => element.getClientRects().length > 0;

function texts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !isShown(element)) continue;
    found.push({ text, ratio: contrast(channels(getComputedStyle(element).color), ground(element)) });
  }
  return found;
}

function audit() {
  const all = [...document.body.querySelectorAll("*")].filter(isShown);
  const explained = all.filter((element) => element.title);
  const scrolls = (element) => element.scrollWidth > element.clientWidth && getComputedStyle(element).overflowX === "auto";
  const needed = [...explained, ...all.filter(scrolls)];
  const outlined = explained.filter((element) => {
    element.focus({ focusVisible: true });
    const style = getComputedStyle(element);
    return document.activeElement === element && style.outlineStyle !== "none"
      && getComputedStyle(element, "::after").content.includes(element.title.slice(0, 20));
  });
  return {
    texts: texts(),
    explained: explained.length,
    outlined: outlined.length,
    unreachable: needed.filter((element) => element.tabIndex < 0).map((element) => element.textContent.slice(0, 40)),
    reordered: all.filter((element) => element.tabIndex > 0).length,
    wide: document.documentElement.scrollWidth > innerWidth,
    elsewhere: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !name.startsWith(location.origin) && !name.startsWith("data:")),
    asked: performance.getEntriesByType("resource").length,
  };
}

const waiting = setInterval(() => {
  if (document.querySelector("#answer[hidden]")) return;
  clearInterval(waiting);
  let found;
  try {
    found = audit();
  } catch (problem) {
    found = { problem: String(problem) };
  }
  document.documentElement.dataset.audit = JSON.stringify(found);
}, 50);

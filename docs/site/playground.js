// Synchronizes the playground's frame with the page around it: colours, URL and height.

const frame = document.querySelector("iframe.playground");

function tell(said) {
  frame.contentWindow.postMessage({ playground: said }, location.origin);
}

function scheme() {
  return document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
}

addEventListener("message", ({ source, origin, data }) => {
  if (source !== frame.contentWindow || origin !== location.origin || !data?.playground) return;
  const { hello, hash, height } = data.playground;
  if (hello) tell({ scheme: scheme(), hash: location.hash, address: location.href.split("#")[0] });
  if (height !== undefined) frame.style.height = height ? `${height}px` : ""; // On narrow screens, the frame is as high as its page.
  if (hash !== undefined) history.replaceState(null, "", hash || location.pathname);
});
addEventListener("hashchange", () => tell({ hash: location.hash }));
new MutationObserver(() => tell({ scheme: scheme() })).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });

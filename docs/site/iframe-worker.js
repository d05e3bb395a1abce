// Makes the search work for pages that are opened from disk. Browsers don't start workers there, because each file is its own origin, so
// a hidden frame runs the worker's script. Pages from a web server aren't affected.

class IFrameWorker extends EventTarget {
  constructor(address) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() => this.load(script)), Promise.resolve());
    this.ready = this.load(address);
  }

  load(address) {
    const script = this.frame.contentDocument.createElement("script");
    const loaded = new Promise((settle, fail) => {
      script.addEventListener("load", settle);
      script.addEventListener("error", fail);
    });
    script.src = address;
    this.frame.contentDocument.body.append(script);
    return loaded;
  }

  async postMessage(data) {
    await this.ready;
    this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker; // the search looks up this name
  window.Worker = IFrameWorker;
}

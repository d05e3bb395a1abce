// The search's worker where a page is read from the disk: browsers start none there, since each file is an origin of its own.
// A hidden frame runs the worker's script instead. Elsewhere this changes nothing.

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
  window.IFrameWorker = IFrameWorker; // the search looks for this name when it asks where it is
  window.Worker = IFrameWorker;
}

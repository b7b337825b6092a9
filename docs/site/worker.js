// Search without a server: a browser starts no worker for a page that was opened as a file. There the worker's script
// runs in a hidden frame, with the three functions of a worker that it uses. IFrameWorker is the name it looks for.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = undefined;
      inner.document.open();
      inner.document.write("<!doctype html><body></body>");
      inner.document.close();
      const load = (address) =>
        new Promise((loaded, failed) => {
          const script = inner.document.createElement("script");
          script.src = new URL(address, location.href).href;
          script.onload = loaded;
          script.onerror = failed;
          inner.document.body.appendChild(script);
        });
      inner.importScripts = (...addresses) => addresses.reduce((before, next) => before.then(() => load(next)), Promise.resolve());
      inner.postMessage = (data) => this.said(data);
      this.ready = load(url);
    }

    said(data) {
      const message = new MessageEvent("message", { data });
      this.dispatchEvent(message);
      this.onmessage?.(message);
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = window.Worker = IFrameWorker;
}

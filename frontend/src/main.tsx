import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./generated/components.css";
import "./pages.css";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { ComparePage } from "./pages/compare";
import { Hub } from "./pages/hub";
import { SessionPage } from "./pages/session";
import { onClick, useAddress } from "./router";

function Page() {
  const { path, query } = useAddress();
  useEffect(() => {
    document.addEventListener("click", onClick);
    return () => document.removeEventListener("click", onClick);
  }, []);
  const [, kind, key, page] = path.split("/");
  if (kind === "sessions" && key) return <SessionPage key={key} session={key} page={page ?? ""} query={query} />;
  if (kind === "compare") return <ComparePage query={query} />;
  return <Hub query={query} />;
}

const place = document.getElementById("page");
if (place) render(<Page />, place);

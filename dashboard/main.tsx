import "./style/main.css";
import { render } from "preact";
import { Shell } from "./shell.tsx";
import { followLinks } from "./state/location.ts";
import { followIdentity } from "./state/session.ts";

followLinks();
followIdentity();
render(<Shell />, document.getElementById("app")!);

import { render } from "preact";
import { App, Failure } from "./app";
import { embeddedSource, servedSource } from "./sources";
import "./pictures/pictures.css";
import "./style.css";

async function start(root: HTMLElement) {
  try {
    const source = embeddedSource(document) ?? await servedSource();
    render(<App source={source} />, root);
  } catch (error) {
    render(<Failure error={error} />, root);
  }
}

const root = document.getElementById("app");
if (root) void start(root);

import { createContext, createElement, type ReactElement, type ReactNode, useContext } from "react";
import type { Runwire } from "../client.js";
import { RunwireError } from "../errors.js";

const Context = createContext<Runwire | undefined>(undefined);

/** Provides a client to the hooks below it. */
export function RunwireProvider(props: { client: Runwire; children?: ReactNode }): ReactElement {
  return createElement(Context.Provider, { value: props.client }, props.children);
}

/** Returns the client of the nearest `RunwireProvider`. */
export function useRunwire(): Runwire {
  const client = useContext(Context);
  if (client === undefined) throw new RunwireError("there is no <RunwireProvider> above this component");
  return client;
}

import { useRef, useState, type ReactNode } from "react";
import { useConnection, useOpenInteractions } from "../client";
import { hrefOf, Link, useRouter, type Route } from "../router";
import { useText } from "../text";
import { classes, Icon, IconButton, type IconName } from "../ui";
import { KeyboardHelp } from "./KeyboardHelp";
import { useKeys } from "./keys";
import { Mark } from "./Mark";
import { useScrollMemory } from "./scroll";
import { Settings } from "./Settings";
import style from "./Shell.module.css";

type Place = "runs" | "inbox" | "threads" | "agents";

const places: readonly { name: Place; icon: IconName }[] = [
  { name: "runs", icon: "runs" },
  { name: "inbox", icon: "inbox" },
  { name: "threads", icon: "threads" },
  { name: "agents", icon: "agents" },
];

/** Tells which entry of the navigation a page belongs to. */
function placeOf(route: Route): Place | null {
  switch (route.name) {
    case "run":
      return "runs";
    case "thread":
      return "threads";
    case "agent":
      return "agents";
    case "not-found":
      return null;
    default:
      return route.name;
  }
}

/** The frame around every page: navigation, settings, the state of the connection. */
export function Shell({ children }: { children: ReactNode }) {
  const { t } = useText();
  const { route, go } = useRouter();
  const [helping, setHelping] = useState(false);
  const main = useRef<HTMLElement>(null);
  const current = placeOf(route);
  const waiting = useOpenInteractions().interactions.length;

  useScrollMemory(main, hrefOf(route));
  useKeys({
    "?": () => setHelping(true),
    "/": () => document.querySelector<HTMLElement>("[data-filter]")?.focus(),
    a: answer,
    "g r": () => go({ name: "runs" }),
    "g i": () => go({ name: "inbox" }),
    "g t": () => go({ name: "threads" }),
    "g a": () => go({ name: "agents" }),
  });

  return (
    <div className={style["shell"]}>
      <a className={style["skip"]} href="#content" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        {t.nav.skip}
      </a>
      <header className={style["side"]}>
        <Link to={{ name: "runs" }} className={style["brand"]}>
          <Mark />
          <span>{t.appName}</span>
        </Link>
        <nav aria-label={t.nav.label} className={style["places"]}>
          {places.map(({ name, icon }) => (
            <Link
              key={name}
              to={{ name }}
              className={classes(style["place"], name === current && style["current"])}
              aria-current={name === current ? "page" : undefined}
            >
              <Icon name={icon} size={18} />
              <span>{t.nav[name]}</span>
              {name === "inbox" && waiting > 0 && (
                <span className={style["count"]}>
                  <span aria-hidden="true">{waiting > 99 ? "99+" : waiting}</span>
                  <span className="unseen">{t.nav.waiting(waiting)}</span>
                </span>
              )}
            </Link>
          ))}
        </nav>
        <div className={style["foot"]}>
          <ConnectionNote />
          <div className={style["tools"]}>
            <Settings />
            <IconButton icon="keyboard" label={t.nav.help} className={style["helpButton"]} onClick={() => setHelping(true)} />
          </div>
        </div>
      </header>
      <main ref={main} id="content" tabIndex={-1} className={style["main"]} data-scroller="">
        {children}
      </main>
      <KeyboardHelp open={helping} onClose={() => setHelping(false)} />
    </div>
  );
}

/** Says quietly that the server is away, and that it is back. */
function ConnectionNote() {
  const { t } = useText();
  const connection = useConnection();
  return (
    <div role="status" className={classes(style["connection"], style[connection])}>
      {connection === "fine" ? "" : t.connection[connection]}
    </div>
  );
}

/** Goes to the first question that waits: to its first field, or where there is only a decision to make, to the whole. */
function answer(): void {
  const question = document.querySelector<HTMLElement>("[data-interaction]");
  const field = question?.querySelector<HTMLElement>("input, textarea, select");
  (field ?? question)?.focus();
}

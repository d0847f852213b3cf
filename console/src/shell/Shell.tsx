import { useRef, useState, type ReactNode } from "react";
import { useConnection, useOpenInteractions } from "../client";
import { hrefOf, Link, useRouter, type Route } from "../router";
import { useText } from "../text";
import { classNames, Icon, IconButton, type IconName } from "../ui";
import { KeyboardHelp } from "./KeyboardHelp";
import { useKeys } from "./useKeys";
import { Logo } from "./Logo";
import { useScrollRestoration } from "./useScrollRestoration";
import { Settings } from "./Settings";
import style from "./Shell.module.css";

type NavEntry = "runs" | "inbox" | "threads" | "agents";

const navEntries: readonly { name: NavEntry; icon: IconName }[] = [
  { name: "runs", icon: "runs" },
  { name: "inbox", icon: "inbox" },
  { name: "threads", icon: "threads" },
  { name: "agents", icon: "agents" },
];

/** Returns the navigation entry of a page. */
function navEntryOf(route: Route): NavEntry | null {
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

/** Layout of every page: navigation, settings and connection status. */
export function Shell({ children }: { children: ReactNode }) {
  const { t } = useText();
  const { route, navigate } = useRouter();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const current = navEntryOf(route);
  const openCount = useOpenInteractions().interactions.length;

  useScrollRestoration(main, hrefOf(route));
  useKeys({
    "?": () => setHelpOpen(true),
    "/": () => document.querySelector<HTMLElement>("[data-filter]")?.focus(),
    a: focusInteraction,
    "g r": () => navigate({ name: "runs" }),
    "g i": () => navigate({ name: "inbox" }),
    "g t": () => navigate({ name: "threads" }),
    "g a": () => navigate({ name: "agents" }),
  });

  return (
    <div className={style["shell"]}>
      <a className={style["skip"]} href="#content" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        {t.nav.skip}
      </a>
      <header className={style["side"]}>
        <Link to={{ name: "runs" }} className={style["brand"]}>
          <Logo />
          <span>{t.appName}</span>
        </Link>
        <nav aria-label={t.nav.label} className={style["navigation"]}>
          {navEntries.map(({ name, icon }) => (
            <Link
              key={name}
              to={{ name }}
              className={classNames(style["navEntry"], name === current && style["current"])}
              aria-current={name === current ? "page" : undefined}
            >
              <Icon name={icon} size={18} />
              <span>{t.nav[name]}</span>
              {name === "inbox" && openCount > 0 && (
                <span className={style["count"]}>
                  <span aria-hidden="true">{openCount > 99 ? "99+" : openCount}</span>
                  <span className="visually-hidden">{t.nav.waiting(openCount)}</span>
                </span>
              )}
            </Link>
          ))}
        </nav>
        <div className={style["foot"]}>
          <ConnectionStatus />
          <div className={style["tools"]}>
            <Settings />
            <IconButton icon="keyboard" label={t.nav.help} className={style["helpButton"]} onClick={() => setHelpOpen(true)} />
          </div>
        </div>
      </header>
      <main ref={main} id="content" tabIndex={-1} className={style["main"]} data-scroller="">
        {children}
      </main>
      <KeyboardHelp open={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </div>
  );
}

/** Shows that the connection is lost or restored. */
function ConnectionStatus() {
  const { t } = useText();
  const connection = useConnection();
  return (
    <div role="status" className={classNames(style["connection"], style[connection])}>
      {connection === "fine" ? "" : t.connection[connection]}
    </div>
  );
}

/** Focuses the first field of the first open interaction, or its form if it has no fields. */
function focusInteraction(): void {
  const form = document.querySelector<HTMLElement>("[data-interaction]");
  const field = form?.querySelector<HTMLElement>("input, textarea, select");
  (field ?? form)?.focus();
}

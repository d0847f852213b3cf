import { useEffect, useMemo, useRef, useState } from "react";
import type { RunFilter } from "@runwire/client";
import { client, usePolled } from "../client";
import { useRouter } from "../router";
import { useText } from "../text";
import { Icon, IconButton, Segments, StatusDot, type RunStatus } from "../ui";
import { shortId } from "./words";
import style from "./RunFilters.module.css";

const statuses: readonly RunStatus[] = ["running", "suspended", "completed", "failed", "cancelled", "pending"];

/** What the address says about which runs are wanted. */
export type AddressFilter = Pick<RunFilter, "agent" | "thread" | "prefix"> & { status?: RunStatus | undefined };

/** Reads the filter from the address. */
export function useRunFilter(): AddressFilter {
  const { query } = useRouter();
  return useMemo(() => {
    const status = query.get("status");
    return {
      status: statuses.find((known) => known === status),
      agent: query.get("agent") ?? undefined,
      thread: query.get("thread") ?? undefined,
      prefix: query.get("find") ?? undefined,
    };
  }, [query]);
}

/** Chooses runs by status, agent, thread, and how their ids begin. The choice stands in the address, so it can be shared. */
export function RunFilters({ filter }: { filter: AddressFilter }) {
  const { t } = useText();
  const { setQuery } = useRouter();
  const agents = usePolled("agents", () => client.agents.list(), { interval: 0 });
  const names = useMemo(() => {
    const known = (agents.data?.agents ?? []).map((agent) => agent.name);
    return filter.agent === undefined || known.includes(filter.agent) ? known : [...known, filter.agent];
  }, [agents.data, filter.agent]);

  return (
    <search aria-label={t.runs.filterLabel} className={style["filters"]}>
      <Segments<RunStatus | "all">
        label={t.runs.status}
        value={filter.status ?? "all"}
        onChange={(status) => setQuery({ status: status === "all" ? null : status })}
        className={style["statuses"]}
        options={[
          { value: "all", name: t.runs.allStatuses },
          ...statuses.map((status) => ({
            value: status,
            name: (
              <>
                <StatusDot status={status} size={12} />
                {t.statusShort[status]}
              </>
            ),
          })),
        ]}
      />
      <select
        className="field"
        aria-label={t.runs.agent}
        value={filter.agent ?? ""}
        onChange={(event) => setQuery({ agent: event.target.value })}
      >
        <option value="">{t.runs.allAgents}</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <FindField found={filter.prefix ?? ""} onFind={(find) => setQuery({ find })} />
      {filter.thread !== undefined && (
        <p className={style["chip"]}>
          <span title={filter.thread}>{t.runs.inThread(shortId(filter.thread))}</span>
          <IconButton icon="cross" size="small" label={t.action.clear} onClick={() => setQuery({ thread: null })} />
        </p>
      )}
    </search>
  );
}

/** How long a person stops typing before the list follows. */
const pause = 300;

/** Finds runs by the beginning of their id, their thread's or their agent's. */
function FindField({ found, onFind }: { found: string; onFind(text: string): void }) {
  const { t } = useText();
  const [typed, setTyped] = useState(found);
  const [known, setKnown] = useState(found);
  if (found !== known) {
    // The filter changed: by what was typed here, or by a link or a button elsewhere.
    setKnown(found);
    if (found !== typed.trim()) setTyped(found);
  }
  const find = useRef(onFind);
  find.current = onFind;
  useEffect(() => {
    if (typed.trim() === found) return;
    const timer = setTimeout(() => find.current(typed.trim()), pause);
    return () => clearTimeout(timer);
  }, [typed, found]);
  return (
    <div className={style["find"]}>
      <Icon name="search" className={style["lens"]} />
      <input
        type="search"
        className="field"
        data-filter=""
        aria-label={t.runs.find}
        placeholder={t.runs.find}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onFind(typed.trim());
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </div>
  );
}

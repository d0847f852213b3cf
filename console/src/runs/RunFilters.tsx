import { useEffect, useMemo, useRef, useState } from "react";
import type { RunFilter } from "@runwire/client";
import { client, usePolled } from "../client";
import { useRouter } from "../router";
import { useText } from "../text";
import { Icon, IconButton, SegmentedControl, StatusDot, type RunStatus } from "../ui";
import { shortId } from "./runText";
import style from "./RunFilters.module.css";

const statuses: readonly RunStatus[] = ["running", "suspended", "completed", "failed", "cancelled", "pending"];

/** Filter of the runs in the URL query. */
export type QueryFilter = Pick<RunFilter, "agent" | "thread" | "prefix"> & { status?: RunStatus | undefined };

/** Returns the filter of the URL query. */
export function useRunFilter(): QueryFilter {
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

/** Filters runs by status, agent, thread and id prefix; stored in the URL query. */
export function RunFilters({ filter }: { filter: QueryFilter }) {
  const { t } = useText();
  const { setQuery } = useRouter();
  const agents = usePolled("agents", () => client.agents.list(), { interval: 0 });
  const names = useMemo(() => {
    const known = (agents.data?.agents ?? []).map((agent) => agent.name);
    return filter.agent === undefined || known.includes(filter.agent) ? known : [...known, filter.agent];
  }, [agents.data, filter.agent]);

  return (
    <search aria-label={t.runs.filterLabel} className={style["filters"]}>
      <SegmentedControl<RunStatus | "all">
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
      <SearchInput prefix={filter.prefix ?? ""} onSearch={(find) => setQuery({ find })} />
      {filter.thread !== undefined && (
        <p className={style["chip"]}>
          <span title={filter.thread}>{t.runs.inThread(shortId(filter.thread))}</span>
          <IconButton icon="cross" size="small" label={t.action.clear} onClick={() => setQuery({ thread: null })} />
        </p>
      )}
    </search>
  );
}

/** Debounce of the search input in milliseconds. */
const searchDebounce = 300;

/** Search input for the prefix of a run, thread or agent. */
function SearchInput({ prefix, onSearch }: { prefix: string; onSearch(text: string): void }) {
  const { t } = useText();
  const [input, setInput] = useState(prefix);
  const [known, setKnown] = useState(prefix);
  if (prefix !== known) {
    // The filter changed: by this input, or by a link or button elsewhere.
    setKnown(prefix);
    if (prefix !== input.trim()) setInput(prefix);
  }
  const find = useRef(onSearch);
  find.current = onSearch;
  useEffect(() => {
    if (input.trim() === prefix) return;
    const timer = setTimeout(() => find.current(input.trim()), searchDebounce);
    return () => clearTimeout(timer);
  }, [input, prefix]);
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
        value={input}
        onChange={(event) => setInput(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onSearch(input.trim());
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </div>
  );
}

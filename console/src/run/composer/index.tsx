import { ProblemError, type Run } from "@runwire/client";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { client, useLive } from "../../client";
import { Link } from "../../router";
import { useText } from "../../text";
import { ErrorNote, IconButton } from "../../ui";
import style from "./Composer.module.css";

interface ComposerProps {
  /** Who answers, unless a person chooses another. */
  agent: string | null | undefined;
  threadId: string;
  /** Why nothing can be sent now; nothing if it can. */
  busy?: string | undefined;
  onStarted(run: Run): void;
}

/** Starts the next run in a thread. */
export function Composer({ agent, threadId, busy, onStarted }: ComposerProps) {
  const { t, language } = useText();
  const words = t.run.composer;
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const key = `runwire.message.${threadId}`;
  const [message, setMessage] = useState(() => kept(key));
  const [chosen, setChosen] = useState<string>();
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  const { data } = useLive("agents", (signal) => client.agents.list(signal), { every: 0 });
  const thread = useLive(`thread ${threadId}`, () => client.threads.get(threadId), { every: busy === undefined ? 5000 : 0 });
  const agents = data?.agents ?? [];
  const usual = agents.find((each) => each.name === agent) ?? agents[0];
  const current = agents.find((each) => each.name === chosen) ?? usual;
  // Another run of the thread may be open, also one that began elsewhere.
  const other = busy === undefined && thread.data?.parallel === false ? thread.data.open_runs[0] : undefined;
  const isBlocked = busy !== undefined || other !== undefined;

  useEffect(() => keep(key, message), [key, message]);
  useEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 200)}px`;
  }, [message]);

  if (data !== undefined && agents.length === 0) return null;

  const send = async () => {
    const text = message.trim();
    if (text === "" || isBlocked || isSending || current === undefined) return;
    setSending(true);
    setError(undefined);
    try {
      const run = await client.runs.create({ thread_id: threadId, agent: current.name, message: text });
      setMessage("");
      keep(key, "");
      onStarted(run);
    } catch (caught) {
      if (caught instanceof ProblemError && caught.code === "thread_busy") thread.refresh();
      else setError(caught);
    } finally {
      setSending(false);
    }
  };
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // Enter that chooses a word of an input method is not meant to send; 229 is how Safari says so.
    const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <div className={style["composer"]}>
      {error !== undefined && <ErrorNote error={error} wanted />}
      <div className={style["box"]} data-blocked={isBlocked || undefined}>
        <label htmlFor={id} className="unseen">
          {words.label}
        </label>
        <textarea
          ref={field}
          id={id}
          rows={1}
          className={style["field"]}
          value={message}
          placeholder={busy ?? (other === undefined ? words.placeholder : words.otherRun)}
          disabled={isBlocked}
          onChange={(event) => setMessage(event.target.value)}
          onKeyDown={press}
        />
        <div className={style["row"]}>
          {agents.length > 1 ? (
            <select
              className={style["agent"]}
              aria-label={words.agent}
              value={current?.name ?? ""}
              disabled={isBlocked}
              onChange={(event) => setChosen(event.target.value)}
            >
              {agents.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.title?.[language] ?? each.name}
                </option>
              ))}
            </select>
          ) : (
            <span className={style["only"]}>{current?.title?.[language] ?? current?.name}</span>
          )}
          {other !== undefined && (
            <Link to={{ name: "run", id: other, tab: "conversation" }} className={style["other"]}>
              {words.openOther}
            </Link>
          )}
          <IconButton
            icon="send"
            size="small"
            label={words.send}
            className={style["send"]}
            disabled={isBlocked || isSending || message.trim() === ""}
            onClick={() => void send()}
          />
        </div>
      </div>
    </div>
  );
}

function kept(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function keep(key: string, message: string): void {
  try {
    if (message === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, message);
  } catch {
    // A browser that forbids storage keeps the message as long as the page, nothing else.
  }
}

import { ProblemError, type Run } from "@runwire/client";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { client, usePolled } from "../../client";
import { Link } from "../../router";
import { useText } from "../../text";
import { ErrorAlert, IconButton } from "../../ui";
import style from "./Composer.module.css";

interface ComposerProps {
  /** Name of the default agent. */
  agent: string | null | undefined;
  threadId: string;
  /** Text that explains why nothing can be sent now; undefined if it can. */
  blockedReason?: string | undefined;
  onStarted(run: Run): void;
}

/** Input that starts the next run in a thread. */
export function Composer({ agent, threadId, blockedReason, onStarted }: ComposerProps) {
  const { t, language } = useText();
  const texts = t.run.composer;
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const key = `runwire.message.${threadId}`;
  const [message, setMessage] = useState(() => loadMessage(key));
  const [selected, setSelected] = useState<string>();
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  const { data } = usePolled("agents", (signal) => client.agents.list(signal), { interval: 0 });
  const thread = usePolled(`thread ${threadId}`, () => client.threads.get(threadId), { interval: blockedReason === undefined ? 5000 : 0 });
  const agents = data?.agents ?? [];
  const defaultAgent = agents.find((each) => each.name === agent) ?? agents[0];
  const current = agents.find((each) => each.name === selected) ?? defaultAgent;
  // Another run of the thread may be open, even one started elsewhere.
  const openRun = blockedReason === undefined && thread.data?.parallel === false ? thread.data.open_runs[0] : undefined;
  const isBlocked = blockedReason !== undefined || openRun !== undefined;

  useEffect(() => storeMessage(key, message), [key, message]);
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
      storeMessage(key, "");
      onStarted(run);
    } catch (caught) {
      if (caught instanceof ProblemError && caught.code === "thread_busy") thread.refresh();
      else setError(caught);
    } finally {
      setSending(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // Enter that confirms an input method composition must not send; Safari reports it as key code 229.
    const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <div className={style["composer"]}>
      {error !== undefined && <ErrorAlert error={error} isUserAction />}
      <div className={style["box"]} data-blocked={isBlocked || undefined}>
        <label htmlFor={id} className="visually-hidden">
          {texts.label}
        </label>
        <textarea
          ref={field}
          id={id}
          rows={1}
          className={style["field"]}
          value={message}
          placeholder={blockedReason ?? (openRun === undefined ? texts.placeholder : texts.otherRun)}
          disabled={isBlocked}
          onChange={(event) => setMessage(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className={style["row"]}>
          {agents.length > 1 ? (
            <select
              className={style["agent"]}
              aria-label={texts.agent}
              value={current?.name ?? ""}
              disabled={isBlocked}
              onChange={(event) => setSelected(event.target.value)}
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
          {openRun !== undefined && (
            <Link to={{ name: "run", id: openRun, tab: "conversation" }} className={style["openRun"]}>
              {texts.openOther}
            </Link>
          )}
          <IconButton
            icon="send"
            size="small"
            label={texts.send}
            className={style["send"]}
            disabled={isBlocked || isSending || message.trim() === ""}
            onClick={() => void send()}
          />
        </div>
      </div>
    </div>
  );
}

function loadMessage(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function storeMessage(key: string, message: string): void {
  try {
    if (message === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, message);
  } catch {
    // Without session storage, the message is lost on reload.
  }
}

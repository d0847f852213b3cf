import type { UserPart } from "@runwire/client";
import { useState } from "react";
import { useText } from "../../text";
import { Button } from "../../ui";
import style from "./UserMessage.module.css";

/** A longer message is collapsed, so that a pasted text does not push the answer out of view. */
const collapseLimits = { characters: 1500, lines: 20 };

/** A message of the user. */
export function UserMessage({ part }: { part: UserPart }) {
  const { t } = useText();
  const isLong = part.text.length > collapseLimits.characters || part.text.split("\n", collapseLimits.lines + 1).length > collapseLimits.lines;
  const [isExpanded, setExpanded] = useState(false);
  return (
    <article className={style["user"]} aria-label={t.run.parts.you}>
      <div className={style["text"]}>
        <p data-collapsed={(isLong && !isExpanded) || undefined}>{part.text}</p>
        {isLong && !isExpanded && (
          <Button size="small" variant="quiet" onClick={() => setExpanded(true)}>
            {t.action.showAll}
          </Button>
        )}
      </div>
    </article>
  );
}

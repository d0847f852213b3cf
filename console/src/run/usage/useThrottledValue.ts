import { useEffect, useRef, useState } from "react";

/** Returns a throttled value, so that aggregates do not change with every animation frame. */
export function useThrottledValue<T>(value: T, interval: number): T {
  const [throttled, setThrottled] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (value === throttled || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setThrottled(latest.current);
    }, interval);
  }, [value, throttled, interval]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return throttled;
}

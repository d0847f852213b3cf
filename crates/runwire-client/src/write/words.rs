//! The closed sets of StreamingEngine's document, as enums.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant),* }

        impl $name {
            /// Tells the word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

words! {
    /// How a tool call ended, as `emit_tool_call_end` says it.
    ToolStatus {
        /// It did what it was asked to.
        Success = "success",
        /// It failed.
        Failed = "failed",
    }
}

words! {
    /// How a session ended.
    SessionStatus {
        /// It came to its end.
        Completed = "completed",
        /// It failed: with the last error that was not recoverable, if there was one.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

words! {
    /// What kind of error it is.
    ErrorType {
        /// Something given was wrong.
        Validation = "validation",
        /// Something that was tried went wrong.
        Execution = "execution",
        /// Something took too long.
        Timeout = "timeout",
        /// The system itself is at fault.
        System = "system",
    }
}

words! {
    /// How a content is written.
    Format {
        /// Markdown, which most front ends expect.
        Markdown = "markdown",
        /// Plain text.
        Text = "text",
        /// HTML.
        Html = "html",
    }
}

words! {
    /// What kind of thinking it is.
    Stage {
        /// It draws conclusions.
        Reasoning = "reasoning",
        /// It plans what to do.
        Planning = "planning",
        /// It looks at what there is.
        Analyzing = "analyzing",
    }
}

words! {
    /// What a block of data is.
    DataType {
        /// A table.
        Dataframe = "dataframe",
        /// A chart.
        Chart = "chart",
        /// An image.
        Image = "image",
        /// Something of the agent's own.
        Custom = "custom",
    }
}

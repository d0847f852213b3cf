//! Enums for the fixed values of StreamingEngine's document.

macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant),* }

        impl $name {
            /// Returns the value on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

string_enum! {
    /// The status of a finished tool call.
    ToolStatus {
        /// It succeeded.
        Success = "success",
        /// It failed.
        Failed = "failed",
    }
}

string_enum! {
    /// The final status of a session.
    SessionStatus {
        /// It completed.
        Completed = "completed",
        /// It failed, with the last error that was not recoverable.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

string_enum! {
    /// The kind of an error.
    ErrorType {
        /// An input was invalid.
        Validation = "validation",
        /// An operation failed.
        Execution = "execution",
        /// An operation timed out.
        Timeout = "timeout",
        /// An internal error.
        System = "system",
    }
}

string_enum! {
    /// The format of a piece of content.
    Format {
        /// Markdown; most front ends expect it.
        Markdown = "markdown",
        /// Plain text.
        Text = "text",
        /// HTML.
        Html = "html",
    }
}

string_enum! {
    /// The kind of thinking.
    Stage {
        /// Reasoning.
        Reasoning = "reasoning",
        /// Planning.
        Planning = "planning",
        /// Analysis.
        Analyzing = "analyzing",
    }
}

string_enum! {
    /// The kind of a block of data.
    DataType {
        /// A table.
        Dataframe = "dataframe",
        /// A chart.
        Chart = "chart",
        /// An image.
        Image = "image",
        /// A custom kind.
        Custom = "custom",
    }
}

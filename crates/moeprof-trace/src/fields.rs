//! The keys that are read from an event and from its args, in one table: what each is called in the file, what it may
//! hold and the column that it fills.

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Event,
    Args,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A string, or anything that is looked at as it stands.
    Text,
    /// A number, or a string that holds one.
    Number,
    /// One of the three numbers of an array.
    Element,
}

macro_rules! fields {
    ($($variant:ident: $within:ident [$($key:literal)*] $takes:ident $column:literal;)*) => {
        /// A key of interest; its number is its place among the values of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Field {
            $($variant,)*
            Ignored,
        }

        const TABLE: [(Within, Takes, &str); FIELDS] = [$((Within::$within, Takes::$takes, $column)),*];

        impl Field {
            /// Finds what a key stands for.
            #[inline]
            pub(crate) fn of(within: Within, key: &[u8]) -> Self {
                match (within, key) {
                    $($((Within::$within, $key) => Self::$variant,)*)*
                    _ => Self::Ignored,
                }
            }
        }
    };
}

fields! {
    Phase: Event [b"ph"] Text "ph";
    Category: Event [b"cat"] Text "category";
    Name: Event [b"name"] Text "name";
    Process: Event [b"pid"] Text "process";
    Thread: Event [b"tid"] Text "thread";
    Start: Event [b"ts"] Number "start_ns";
    Duration: Event [b"dur"] Number "duration_ns";
    Args: Event [b"args"] Text "";
    Correlation: Args [b"correlation"] Number "correlation";
    ExternalId: Args [b"External id" b"external id"] Number "external_id";
    Device: Args [b"device"] Number "device";
    Stream: Args [b"stream"] Number "stream";
    GridX: Args [b"grid"] Element "grid_x";
    GridY: Args [] Element "grid_y";
    GridZ: Args [] Element "grid_z";
    BlockX: Args [b"block"] Element "block_x";
    BlockY: Args [] Element "block_y";
    BlockZ: Args [] Element "block_z";
    Registers: Args [b"registers per thread"] Number "registers_per_thread";
    SharedMemory: Args [b"shared memory"] Number "shared_memory";
    GraphId: Args [b"graph id"] Number "graph_id";
    Bytes: Args [b"bytes" b"Bytes"] Number "bytes";
    GraphNodeId: Args [b"graph node id"] Number "graph_node_id";
    Collective: Args [b"Collective name"] Text "collective";
    DataType: Args [b"dtype"] Text "dtype";
    GroupName: Args [b"Process Group Name"] Text "group_name";
    GroupDescription: Args [b"Process Group Description"] Text "group_description";
    GroupRanks: Args [b"Process Group Ranks"] Text "group_ranks";
    InElements: Args [b"In msg nelems"] Number "in_elements";
    OutElements: Args [b"Out msg nelems"] Number "out_elements";
    GroupSize: Args [b"Group size"] Number "group_size";
    SourceRank: Args [b"Src Rank"] Number "source_rank";
    DestinationRank: Args [b"Dst Rank"] Number "destination_rank";
    Sequence: Args [b"Seq"] Number "sequence";
    CommsId: Args [b"Comms Id"] Number "comms_id";
    LabelName: Args [b"name"] Text "";
    Labels: Args [b"labels"] Text "";
    SortIndex: Args [b"sort_index"] Text "";
}

/// How many values an event can have.
pub(crate) const FIELDS: usize = Field::Ignored as usize;

/// The values that stand in the event itself, as bits.
pub(crate) const EVENT_LEVEL: u64 = {
    let mut bits = 0;
    let mut index = 0;
    while index < FIELDS {
        if matches!(TABLE[index].0, Within::Event) {
            bits |= 1 << index;
        }
        index += 1;
    }
    bits
};

/// The numbers of `device_args` and the ids of it.
pub(crate) const DEVICE_NUMBERS: [Field; 11] = [
    Field::Device,
    Field::Stream,
    Field::GridX,
    Field::GridY,
    Field::GridZ,
    Field::BlockX,
    Field::BlockY,
    Field::BlockZ,
    Field::Registers,
    Field::SharedMemory,
    Field::Bytes,
];
pub(crate) const DEVICE_IDS: [Field; 2] = [Field::GraphId, Field::GraphNodeId];

/// The texts, numbers and ids of `collective_args`.
pub(crate) const COLLECTIVE_TEXTS: [Field; 5] =
    [Field::Collective, Field::DataType, Field::GroupName, Field::GroupDescription, Field::GroupRanks];
pub(crate) const COLLECTIVE_NUMBERS: [Field; 5] =
    [Field::InElements, Field::OutElements, Field::GroupSize, Field::SourceRank, Field::DestinationRank];
pub(crate) const COLLECTIVE_IDS: [Field; 2] = [Field::Sequence, Field::CommsId];

impl Field {
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// The column that the values of this key fill; "" where there is none.
    pub(crate) fn column(self) -> &'static str {
        TABLE.get(self as usize).map_or("", |row| row.2)
    }

    /// The three members of an array value: `grid` and `block`.
    pub(crate) fn triple(self) -> Option<[Self; 3]> {
        match self {
            Self::GridX => Some([Self::GridX, Self::GridY, Self::GridZ]),
            Self::BlockX => Some([Self::BlockX, Self::BlockY, Self::BlockZ]),
            _ => None,
        }
    }

    /// Tells whether the value is a number or one of the numbers of an array.
    pub(crate) fn is_plain_number(self) -> bool {
        TABLE.get(self as usize).is_some_and(|row| row.1 != Takes::Text)
    }

    /// Tells whether a string value of this key may stand for a number.
    pub(crate) fn is_numeric(self) -> bool {
        TABLE.get(self as usize).is_some_and(|row| row.1 == Takes::Number)
    }
}

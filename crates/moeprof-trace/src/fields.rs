//! The keys that are read from an event and from its args.

/// A key of interest; its number is its place among the values of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Field {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Start,
    Duration,
    Args,
    Correlation,
    ExternalId,
    Device,
    Stream,
    GridX,
    GridY,
    GridZ,
    BlockX,
    BlockY,
    BlockZ,
    Registers,
    SharedMemory,
    Bytes,
    GraphId,
    GraphNodeId,
    Collective,
    DataType,
    GroupName,
    GroupDescription,
    GroupRanks,
    InElements,
    OutElements,
    GroupSize,
    SourceRank,
    DestinationRank,
    Sequence,
    CommsId,
    LabelName,
    Labels,
    SortIndex,
    Ignored,
}

/// How many values an event can have.
pub(crate) const FIELDS: usize = Field::Ignored as usize;

/// The values that stand in the event itself, as bits.
pub(crate) const EVENT_LEVEL: u64 = (1 << Field::Args as u64) - 1;

impl Field {
    #[inline]
    pub(crate) fn bit(self) -> u64 {
        1 << self as u64
    }

    /// The key of an event.
    #[inline]
    pub(crate) fn of_event(key: &[u8]) -> Self {
        match key {
            b"ph" => Self::Phase,
            b"cat" => Self::Category,
            b"name" => Self::Name,
            b"pid" => Self::Process,
            b"tid" => Self::Thread,
            b"ts" => Self::Start,
            b"dur" => Self::Duration,
            b"args" => Self::Args,
            _ => Self::Ignored,
        }
    }

    /// The key of an event's args.
    #[inline]
    pub(crate) fn of_args(key: &[u8]) -> Self {
        match key {
            b"correlation" => Self::Correlation,
            b"External id" | b"external id" => Self::ExternalId,
            b"device" => Self::Device,
            b"stream" => Self::Stream,
            b"grid" => Self::GridX,
            b"block" => Self::BlockX,
            b"registers per thread" => Self::Registers,
            b"shared memory" => Self::SharedMemory,
            b"bytes" | b"Bytes" => Self::Bytes,
            b"graph id" => Self::GraphId,
            b"graph node id" => Self::GraphNodeId,
            b"Collective name" => Self::Collective,
            b"dtype" => Self::DataType,
            b"Process Group Name" => Self::GroupName,
            b"Process Group Description" => Self::GroupDescription,
            b"Process Group Ranks" => Self::GroupRanks,
            b"In msg nelems" => Self::InElements,
            b"Out msg nelems" => Self::OutElements,
            b"Group size" => Self::GroupSize,
            b"Src Rank" => Self::SourceRank,
            b"Dst Rank" => Self::DestinationRank,
            b"Seq" => Self::Sequence,
            b"Comms Id" => Self::CommsId,
            b"name" => Self::LabelName,
            b"labels" => Self::Labels,
            b"sort_index" => Self::SortIndex,
            _ => Self::Ignored,
        }
    }

    /// The three members of an array value: `grid` and `block`.
    pub(crate) fn triple(self) -> Option<[Self; 3]> {
        match self {
            Self::GridX => Some([Self::GridX, Self::GridY, Self::GridZ]),
            Self::BlockX => Some([Self::BlockX, Self::BlockY, Self::BlockZ]),
            _ => None,
        }
    }

    /// Tells whether a string value of this key may stand for a number.
    pub(crate) fn is_numeric(self) -> bool {
        use Field as F;
        let range = |first: F, last: F| (first as u8..=last as u8).contains(&(self as u8));
        matches!(self, F::Start | F::Duration)
            || range(F::Correlation, F::Stream)
            || range(F::Registers, F::GraphNodeId)
            || range(F::InElements, F::CommsId)
    }
}

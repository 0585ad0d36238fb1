package sim

// Mutant is a defence that is taken away.
type Mutant int

// The mutants.
const (
	None Mutant = iota
	NoExpectedSequence
	NoChain
	NoLeaderCheck
	NoParentGate
	NoContiguousAcks
	NoGuard
	NoTombstone
	NoFloor
	RememberPages
	NoMargin
	NoWait
	WideExcuse
	NoFence
	NoObservedSilence
	OldSnapshots
	OneGapBetween
	ForgetParents
	NoRoom
	NoListing
	NoMark
	NeverUnread
	OneDenial
	EndAtOnce
	NeverReopen
	OneEnd
	EndForGood
	EmptyEnd
	NoPatience
	NoReader
	KeepPacked
	mutants
)

// names say what each mutant takes away.
var names = [mutants]string{
	NoExpectedSequence: "expected sequence", NoChain: "hash of the predecessor", NoLeaderCheck: "leader's end of the log",
	NoParentGate: "parent before child", NoContiguousAcks: "contiguous acks", NoGuard: "guard", NoTombstone: "tombstone",
	NoFloor: "floor of a life", RememberPages: "stored, not remembered", NoMargin: "margin of a read",
	NoWait:     "wait for the proof",
	WideExcuse: "which losses excuse themselves", NoFence: "fence", NoObservedSilence: "observed silence",
	OldSnapshots: "a snapshot follows its log", OneGapBetween: "gap until the next stream",
	ForgetParents: "parents in a gone stream", NoRoom: "room between a copy and the first change",
	NoListing: "proof: a listing begun since", NoMark: "proof: the mark", NeverUnread: "proof: read becomes unread",
	OneDenial: "a denial is confirmed", EndAtOnce: "an end is read again",
	NeverReopen: "a shard that lives is read on", OneEnd: "a stream's end is confirmed",
	EndForGood: "a stream's end is withdrawn", EmptyEnd: "the last record shows the end",
	NoPatience: "only an answer that lasts", NoReader: "proof: what is listed is read",
	KeepPacked: "packed ahead, dropped in doubt",
}

func (m Mutant) String() string { return names[m] }

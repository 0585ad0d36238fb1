package checkpoint

// Kind is the type of an entry: one byte of its stored form.
type Kind byte

// The kinds of entries.
const (
	KindClaim    Kind = 'c' // an owner takes the log over
	KindRelease  Kind = 'r' // the owner gives the log up
	KindStart    Kind = 's' // the first listing of a stream: where every shard starts
	KindGraph    Kind = 'g' // what later listings found
	KindFrame    Kind = 'f' // pages of changes
	KindBeat     Kind = 'b' // how far idle shards have been read
	KindMarks    Kind = 'm' // how far the sinks have applied the log
	KindGap      Kind = 'x' // a range of the source was lost
	KindControl  Kind = 'k' // pause, resume, halt
	KindSnapshot Kind = 'n' // a part of the whole state
)

// String returns the word for a kind that metrics, messages and `queue dump` show.
func (k Kind) String() string {
	switch k {
	case KindClaim:
		return "claim"
	case KindRelease:
		return "release"
	case KindStart:
		return "start"
	case KindGraph:
		return "graph"
	case KindFrame:
		return "frame"
	case KindBeat:
		return "beat"
	case KindMarks:
		return "marks"
	case KindGap:
		return "gap"
	case KindControl:
		return "control"
	case KindSnapshot:
		return "snapshot"
	}
	return "unknown"
}

// newBody returns an empty body of a kind, nil when the kind does not exist.
func newBody(k Kind) any {
	switch k {
	case KindClaim:
		return new(Claim)
	case KindRelease:
		return new(Release)
	case KindStart:
		return new(Start)
	case KindGraph:
		return new(Graph)
	case KindFrame:
		return new(Frame)
	case KindBeat:
		return new(Beat)
	case KindMarks:
		return new(Marks)
	case KindGap:
		return new(Gap)
	case KindControl:
		return new(Control)
	case KindSnapshot:
		return new(Snapshot)
	}
	return nil
}

// KindOf returns the kind of an entry with this body, 0 when its type is not one of a body.
func KindOf(body any) Kind {
	switch body.(type) {
	case *Claim:
		return KindClaim
	case *Release:
		return KindRelease
	case *Start:
		return KindStart
	case *Graph:
		return KindGraph
	case *Frame:
		return KindFrame
	case *Beat:
		return KindBeat
	case *Marks:
		return KindMarks
	case *Gap:
		return KindGap
	case *Control:
		return KindControl
	case *Snapshot:
		return KindSnapshot
	}
	return 0
}

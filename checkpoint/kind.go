package checkpoint

import "reflect"

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

	// Format 3.
	KindCopy      Kind = 'o' // a copy of the table's items begins
	KindCopyMarks Kind = 'p' // how far it has come
	KindHealed    Kind = 'h' // a resync of the whole table is complete
)

// kinds are the words for each kind that metrics, messages and `queue dump` show, and the type of its body.
var kinds = map[Kind]struct {
	word string
	body reflect.Type
}{
	KindClaim:     {"claim", reflect.TypeFor[Claim]()},
	KindRelease:   {"release", reflect.TypeFor[Release]()},
	KindStart:     {"start", reflect.TypeFor[Start]()},
	KindGraph:     {"graph", reflect.TypeFor[Graph]()},
	KindFrame:     {"frame", reflect.TypeFor[Frame]()},
	KindBeat:      {"beat", reflect.TypeFor[Beat]()},
	KindMarks:     {"marks", reflect.TypeFor[Marks]()},
	KindGap:       {"gap", reflect.TypeFor[Gap]()},
	KindControl:   {"control", reflect.TypeFor[Control]()},
	KindSnapshot:  {"snapshot", reflect.TypeFor[Snapshot]()},
	KindCopy:      {"copy", reflect.TypeFor[Copy]()},
	KindCopyMarks: {"copy marks", reflect.TypeFor[CopyMarks]()},
	KindHealed:    {"healed", reflect.TypeFor[Healed]()},
}

// kindsOfBodies is kinds by the type of a pointer to the body.
var kindsOfBodies = func() map[reflect.Type]Kind {
	all := make(map[reflect.Type]Kind, len(kinds))
	for k, x := range kinds {
		all[reflect.PointerTo(x.body)] = k
	}
	return all
}()

// String returns the word for a kind.
func (k Kind) String() string {
	if x, ok := kinds[k]; ok {
		return x.word
	}
	return "unknown"
}

// newBody returns an empty body of a kind, nil when the kind does not exist.
func newBody(k Kind) any {
	if x, ok := kinds[k]; ok {
		return reflect.New(x.body).Interface()
	}
	return nil
}

// KindOf returns the kind of an entry with this body, 0 when its type is not one of a body.
func KindOf(body any) Kind { return kindsOfBodies[reflect.TypeOf(body)] }

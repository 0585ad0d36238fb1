package checkpoint

import "reflect"

// Kind is the type of an entry: one byte of its stored form.
type Kind byte

// The kinds of entries.
const (
	KindClaim     Kind = 'c' // an owner takes the log over
	KindRelease   Kind = 'r' // the owner gives the log up
	KindStart     Kind = 's' // the first listing of a stream: where every shard starts
	KindGraph     Kind = 'g' // what later listings found
	KindFrame     Kind = 'f' // pages of changes
	KindBeat      Kind = 'b' // how far idle shards have been read
	KindMarks     Kind = 'm' // how far the sinks have applied the log
	KindGap       Kind = 'x' // a range of the source was lost
	KindControl   Kind = 'k' // pause, resume, halt
	KindSnapshot  Kind = 'n' // a part of the whole state
	KindCopy      Kind = 'o' // a copy of the table's items begins
	KindCopyMarks Kind = 'p' // how far it has come
	KindHealed    Kind = 'h' // a resync of the whole table is complete
)

// of returns the type of a body. A type without the methods of Body does not compile.
func of[T any, P interface {
	*T
	Body
}]() reflect.Type {
	return reflect.TypeFor[T]()
}

// kinds are the words for each kind that metrics, messages and `queue dump` show, and the type of
// its body.
var kinds = map[Kind]struct {
	word string
	body reflect.Type
}{
	KindClaim:     {"claim", of[Claim]()},
	KindRelease:   {"release", of[Release]()},
	KindStart:     {"start", of[Start]()},
	KindGraph:     {"graph", of[Graph]()},
	KindFrame:     {"frame", of[Frame]()},
	KindBeat:      {"beat", of[Beat]()},
	KindMarks:     {"marks", of[Marks]()},
	KindGap:       {"gap", of[Gap]()},
	KindControl:   {"control", of[Control]()},
	KindSnapshot:  {"snapshot", of[Snapshot]()},
	KindCopy:      {"copy", of[Copy]()},
	KindCopyMarks: {"copy marks", of[CopyMarks]()},
	KindHealed:    {"healed", of[Healed]()},
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

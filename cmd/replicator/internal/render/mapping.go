package render

import (
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/catalog"
)

// MappingEdit writes what has changed between the mapping that wrote the rows of a table and the
// one of the configuration, and what to do about it; with accept it is being done, if it can be.
func MappingEdit(out io.Writer, e *catalog.MappingEdit, accept bool) {
	what, hint := e.Verdict()
	fmt.Fprintln(out, what)
	for _, reason := range e.Reasons {
		fmt.Fprintf(out, "  %s\n", reason)
	}
	if hint != "" && (!accept || !e.Acceptable) {
		fmt.Fprintf(out, "  next: %s\n", hint)
	}
	if e.From != e.To && !e.Acceptable {
		fmt.Fprintf(out, otherWay, e.Source, e.Target)
	}
}

// otherWay is how a mapping changes that cannot be accepted: source and target of the table follow.
const otherWay = `
  The other way is a new target beside the old one, which readers switch to when it is complete:
    1. copy the configuration; in the copy write another pipeline, another queue.dir (not for queue.url), another
       admin.listen, and for %s another target than %s, with backfill: scan
    2. replicator schema --apply -c NEW.yaml && replicator check -c NEW.yaml
    3. replicator run -c NEW.yaml        (beside the running replicator; both read the same stream)
    4. replicator status --wait applied=now -c NEW.yaml
    5. switch the readers to the new target, stop the old replicator, delete the old target
`

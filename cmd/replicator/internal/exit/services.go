package exit

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Source adds exit code and hint to an error of DynamoDB.
func Source(err error) error {
	hint := source.Hint(err)
	if hint == "" {
		hint = "are region, endpoint and credentials right? `aws sts get-caller-identity` shows who you are"
	}
	return Environment(err, hint)
}

// Bigtable adds exit code and hint to an error of Bigtable.
func Bigtable(err error) error {
	hint := "are bigtable.project and bigtable.instance right, and is the service reachable from here?"
	switch bigtable.Classify(err) {
	case failure.Denied:
		hint = "the account needs roles/bigtable.user, and roles/bigtable.admin for schema --apply: see docs/credentials.md"
	case failure.Missing:
		hint = "`replicator schema --apply` makes the tables and families"
	}
	if strings.Contains(err.Error(), "could not find default credentials") { // the library has no type for it
		hint = "gcloud auth application-default login, or the credentials of a service account: " +
			"see docs/credentials.md; for the sandbox: eval \"$(replicator sandbox env)\""
	}
	return Environment(err, hint)
}

// Row adds exit code and hint to an error of the row of a table, which is in Bigtable or in the archive's bucket.
func Row(err error) error {
	var foreign *staterow.OtherPipelineError
	var stored *bucket.Error
	switch {
	case errors.As(err, &foreign):
		return Environment(err, foreign.Hint())
	case errors.As(err, &stored):
		return Environment(err, stored.Hint)
	}
	return Bigtable(err)
}

// Queue adds exit code and hint to an error of opening the queue.
func Queue(err error, cfg *config.Config) error {
	dir := cfg.Queue.Dir
	switch {
	case errors.Is(err, queue.ErrLocked):
		return Environment(err, "the process with that pid has "+dir+" open: stop it, or set another queue.dir")
	case errors.Is(err, queue.ErrNoSpace):
		return Environment(err, "make room on the volume of "+dir+
			", or enlarge it; then start again: see TailraceDiskLow in docs/operations.md")
	case errors.Is(err, fs.ErrPermission):
		return Environment(err, "run it as the user that owns "+dir)
	case errors.Is(err, queue.ErrOldServer):
		return Environment(err, "update the NATS servers, one after the other")
	case errors.Is(err, queue.ErrDenied):
		return Environment(err,
			"compare the user, password or token in queue.url, or the file of queue.creds, with the server's")
	case dir != "":
		return Environment(err, "the embedded queue in "+dir+" did not start: see docs/operations.md")
	case errors.Is(err, queue.ErrUnreachable):
		return Environment(err,
			"is queue.url right, is the server up, and does it accept connections from this machine (TLS: queue.tls)?")
	default:
		return Environment(err, "the server of queue.url answers, but cannot keep logs: the message names the setting")
	}
}

package conn

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

const noStorage = "less than queue.max_bytes, archive.max_bytes and 1 GiB of dead letters is left per table: " +
	"lower queue.max_bytes or archive.max_bytes, or raise max_file_store of the servers"

// settings explains, by error code, which key of the configuration to change when JetStream refuses
// a request.
var settings = map[jetstream.ErrorCode]string{
	CodeNoPeers: "the cluster has fewer servers with room than queue.replicas asks for: " +
		"lower it, add servers, or lower queue.max_bytes",
	CodeNoReplicas:  "the server is not part of a cluster: set queue.replicas to 1, or give queue.url a cluster",
	CodeStorage:     noStorage,
	CodeNoResources: noStorage,
	CodeAccountResources: "the account's limit of storage is below queue.max_bytes and 1 GiB of dead letters per table: " +
		"lower queue.max_bytes, or raise the limit",
	CodeMaxStreamBytes:        "the account's limit of a stream is below queue.max_bytes: lower that, or raise the limit",
	CodeMaxStreams:            "each table needs two streams: raise the account's limit of streams",
	CodeNoJetStreamForAccount: "enable JetStream for the account of queue.url or queue.creds",
	CodeNoJetStream:           "enable JetStream on the servers of queue.url",
}

// Explain adds to a refusal by JetStream which setting to change; it returns any other error as it
// is.
func Explain(err error) error {
	if what, ok := settings[codeOf(err)]; ok {
		return fmt.Errorf("%w: %s", err, what)
	}
	return err
}

package conn

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// PurgeRequest requests the deletion of the messages below Below, or of the messages on Subject.
// The fields are JetStream's.
type PurgeRequest struct {
	Below   uint64 `json:"seq,omitempty"`
	Subject string `json:"filter,omitempty"`
}

// Purge deletes messages of a stream. It may be repeated.
func (c *Conn) Purge(ctx context.Context, stream string, what PurgeRequest) error {
	if err := c.carryOut(ctx, "STREAM.PURGE."+stream, what); err != nil {
		return fmt.Errorf("purge %s: %w", stream, err)
	}
	return nil
}

// carryOut makes a request of JetStream's API that is answered only with whether it was done.
//
// Rule 15: only "success": true shows that. The client library takes each answer without an error
// for it, also one that is not the server's. what is nil for a request without a body.
func (c *Conn) carryOut(ctx context.Context, request string, what any) error {
	ctx, cancel := c.WithAckTimeout(ctx)
	defer cancel()
	var data []byte
	if what != nil {
		var err error
		if data, err = json.Marshal(what); err != nil {
			return err
		}
	}
	answer, err := c.Request(ctx, request, data)
	if err != nil {
		return err
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	switch err := json.Unmarshal(answer.Data, &got); {
	case err != nil:
		return fmt.Errorf("%w: %w", jetstream.ErrInvalidJetStreamResponse, err)
	case got.Error != nil:
		return got.Error
	case !got.Success:
		return jetstream.ErrInvalidJetStreamResponse
	}
	return nil
}

package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The requests in this file read from the leader of a stream where it ends and what is stored
// there. A consumer does not answer that: it may run on a replica that lags behind the leader, and
// more may be stored than it delivers.

// MessageRequest requests one message: the one at Seq, the newest one on LastFor, or the first one
// on NextFor at or after Seq. The fields are JetStream's.
type MessageRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
}

// GetMessage returns a message of the stream as its leader has it; jetstream.ErrMsgNotFound when
// there is none.
//
// It does not use the client library's GetMsg, which reads from any replica if an operator has set
// AllowDirect on the stream.
func (c *Conn) GetMessage(ctx context.Context, stream string, what MessageRequest) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := c.WithAckTimeout(ctx)
	defer cancel()
	req, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("get message of %s: %w", stream, err)
	}
	answer, err := c.Request(ctx, "STREAM.MSG.GET."+stream, req)
	if err != nil {
		return nil, fmt.Errorf("get message of %s: %w", stream, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Headers []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return nil, fmt.Errorf("get message of %s: %w: %w", stream, jetstream.ErrInvalidJetStreamResponse, err)
	}
	switch {
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, jetstream.ErrMsgNotFound
	case got.Error != nil:
		return nil, fmt.Errorf("get message of %s: %w", stream, got.Error)
	case got.Message == nil:
		return nil, fmt.Errorf("get message of %s: %w", stream, jetstream.ErrInvalidJetStreamResponse)
	}
	m := &jetstream.RawStreamMsg{
		Subject: got.Message.Subject, Sequence: got.Message.Seq, Data: got.Message.Data, Time: got.Message.Time,
	}
	if len(got.Message.Headers) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(got.Message.Headers); err != nil {
			return nil, fmt.Errorf("get message of %s: %w", stream, err)
		}
	}
	return m, nil
}

// Next returns the first message at or after a sequence.
func (c *Conn) Next(ctx context.Context, stream string, seq uint64) (*jetstream.RawStreamMsg, error) {
	return c.GetMessage(ctx, stream, MessageRequest{Seq: seq, NextFor: ">"})
}

// StreamInfo reads the configuration and state of a stream. It returns jetstream.ErrStreamNotFound
// only after ConfirmMissing, and ErrNoLeader when a replica answers because there is no leader, or
// a leader that may be none any more.
func (c *Conn) StreamInfo(
	ctx context.Context, st jetstream.Stream, opts ...jetstream.StreamInfoOpt,
) (*jetstream.StreamInfo, error) {
	asking, cancel := c.WithAckTimeout(ctx)
	defer cancel()
	info, err := st.Info(asking, opts...)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, c.ConfirmMissing(ctx, st.CachedInfo().Config.Name)
	case err != nil:
		return nil, err
	case info.Cluster != nil && !leads(info.Cluster):
		return nil, ErrNoLeader
	}
	return info, nil
}

// heardWithin is how long ago a leader heard a replica at most that counts as there: replicas
// answer once a second. A leader notices only after 10 to 20 s that it hears no majority.
const heardWithin = 4 * time.Second

// leads reports whether a stream has a leader that hears a majority of its replicas. One that hears
// none still answers how far the stream goes, while nothing can be appended: the owner of a log
// would seem silent.
func leads(c *jetstream.ClusterInfo) bool {
	heard := 1 // itself
	for _, r := range c.Replicas {
		if !r.Offline && r.Active < heardWithin {
			heard++
		}
	}
	return c.Leader != "" && 2*heard > 1+len(c.Replicas)
}

// ConfirmMissing returns jetstream.ErrStreamNotFound when the stream does not exist, otherwise a
// transient error. A server that has just started may answer "not found" for a stream of its
// cluster that it has not opened yet. Therefore this requests a message: the stream's leader
// answers that, or the cluster's leader if there is no such stream.
func (c *Conn) ConfirmMissing(ctx context.Context, stream string) error {
	_, err := c.GetMessage(ctx, stream, MessageRequest{Seq: 1})
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == CodeStreamNotFound:
		return jetstream.ErrStreamNotFound
	case err == nil, errors.Is(err, jetstream.ErrMsgNotFound):
		return ErrNoLeader // the stream exists after all: ask again
	}
	return err
}

// ListStreams returns the streams with names that begin with a prefix. With ErrListing it returns
// the streams that were described.
//
// Rule 13: a cluster's listing leaves out each stream with a leader that does not answer the server
// that lists, and names it apart. A stream that is named and not described exists, so such a
// listing is incomplete and is not used. The client library's ListStreams ignores these names, and
// may return other streams twice. A stream that is deleted between two pages moves another one from
// the second into the first, which was read.
func (c *Conn) ListStreams(ctx context.Context, prefix string) (all []*jetstream.StreamInfo, err error) {
	var lacks error
	for offset, total := 0, 0; ; {
		page, err := c.listPage(ctx, offset)
		if err != nil {
			return all, fmt.Errorf("list streams: %w", err)
		}
		described := map[string]bool{}
		for _, info := range page.Streams {
			described[info.Config.Name] = true
			if strings.HasPrefix(info.Config.Name, prefix) {
				all = append(all, info)
			}
		}
		silent := slices.DeleteFunc(page.Missing, func(name string) bool { return described[name] })
		for _, name := range silent {
			if strings.HasPrefix(name, prefix) && lacks == nil {
				lacks = fmt.Errorf("list streams: %w: the leader of %s did not answer", ErrListing, name)
			}
		}
		if offset > 0 && page.Total != total {
			return all, fmt.Errorf("list streams: %w: there were %d, and then %d", ErrListing, total, page.Total)
		}
		total = page.Total
		offset += len(page.Streams) + len(silent)
		if offset >= total {
			return all, lacks
		}
		if len(page.Streams)+len(silent) == 0 {
			return all, fmt.Errorf("list streams: %w: %d of %d", ErrListing, offset, total)
		}
	}
}

// listPage is a page of a listing.
type listPage struct {
	Type    string                  `json:"type"`
	Error   *jetstream.APIError     `json:"error"`
	Total   int                     `json:"total"`
	Streams []*jetstream.StreamInfo `json:"streams"`
	Missing []string                `json:"missing"`
}

// listingType is the type that each listing carries.
const listingType = "io.nats.jetstream.api.v1.stream_list_response"

// listPage requests the streams after the first offset ones, in the order of their names.
func (c *Conn) listPage(ctx context.Context, offset int) (page listPage, err error) {
	ctx, cancel := c.WithAckTimeout(ctx)
	defer cancel()
	answer, err := c.Request(ctx, "STREAM.LIST", fmt.Appendf(nil, `{"offset":%d}`, offset))
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(answer.Data, &page); err != nil {
		return page, fmt.Errorf("%w: %w", ErrListing, err)
	}
	switch {
	case page.Error != nil:
		return page, page.Error
	case page.Type != listingType, slices.Contains(page.Streams, nil):
		return page, fmt.Errorf("%w: %w", ErrListing, jetstream.ErrInvalidJetStreamResponse)
	}
	return page, nil
}

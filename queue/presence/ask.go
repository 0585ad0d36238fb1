package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Request is a request to a member to hand a log over.
type Request struct {
	From  string `json:"from"` // the member that is to get it
	Table string `json:"table"`
	Epoch uint64 `json:"epoch"` // of the owner's claim, as last reported to the requester
	Why   string `json:"why"`   // WhyLoad or WhySick
}

// Why a log is requested.
const (
	WhyLoad = "load" // its owner has more work than the others
	WhySick = "sick" // its owner does not reach a service that the asker reaches
)

type reply struct {
	Refused string `json:"refused,omitempty"`
}

// ErrRefused means that the owner keeps the log; the text gives the reason.
var ErrRefused = errors.New("the owner keeps the log")

const askTimeout = 5 * time.Second

// Ask requests the owner of a log to hand it over to this process. When it returns nil the owner
// has begun to; its release of the log completes it.
func (g *Group) Ask(ctx context.Context, owner string, r Request) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r.From = g.o.Me
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("ask for log of %s: %w", r.Table, err)
	}
	m, err := g.conn.NC.RequestWithContext(ctx, g.o.Subject+".ask."+token(owner), data)
	if err != nil {
		return fmt.Errorf("ask for log of %s: %w", r.Table, err)
	}
	var answer reply
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("ask for log of %s: %w", r.Table, err)
	}
	if answer.Refused != "" {
		return fmt.Errorf("ask for log of %s: %w: %s", r.Table, ErrRefused, answer.Refused)
	}
	return nil
}

// answer decides about a request.
func (g *Group) answer(m *nats.Msg) {
	var r Request
	if err := json.Unmarshal(m.Data, &r); err != nil || r.From == "" || r.Table == "" {
		return
	}
	data, err := json.Marshal(reply{Refused: g.o.Asked(r)})
	if err == nil {
		_ = m.Respond(data) // without an answer the asker tries again later
	}
}

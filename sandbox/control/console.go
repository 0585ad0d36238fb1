// Package control runs commands on a sandbox by name: over HTTP, from a timeline file, or from Go.
// Each command calls the Go API of one part of the sandbox, which tests may also call directly.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// Prefix is the path under which a sandbox's DynamoDB port takes commands.
const Prefix = "/_sandbox/"

// Parts are the parts of a sandbox that a console controls. Ledger and Bigtable may be nil: their
// commands are then unknown.
type Parts struct {
	Clock    *clock.Clock
	Stream   *stream.Engine
	DynamoDB *dynamo.Server
	HTTP     *fault.HTTP
	Ledger   *ledger.Ledger
	Bigtable *bigtable.Front
	Expire   func(now time.Time) int // makes one sweep of time to live; returns the number of deleted items
	Seed     uint64                  // of commands that pick a random shard
}

// Console runs commands. It is safe for concurrent use.
type Console struct {
	Parts
	commands map[string]command

	mu  sync.Mutex
	rnd *rand.Rand
}

// command is what a name runs.
type command struct {
	doc    string
	fields []string // names of its arguments
	run    func(ctx context.Context, args []byte) (any, error)
}

// New returns a console for the parts of a sandbox.
func New(p Parts) *Console {
	c := &Console{Parts: p, commands: map[string]command{}, rnd: rand.New(rand.NewPCG(p.Seed, 7))}
	c.streamCommands()
	c.wireCommands()
	c.plainWireCommands()
	c.httpCommands()
	c.readCommands()
	c.timeCommands()
	if p.Ledger != nil {
		c.ledgerCommands()
	}
	if p.Bigtable != nil {
		c.bigtableCommands()
	}
	return c
}

// Span is a duration that JSON spells as "1m30s".
type Span time.Duration

// UnmarshalText reads a duration as time.ParseDuration does.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// d returns the span as a duration.
func (s Span) d() time.Duration { return time.Duration(s) }

// add registers a command with the JSON fields of A as its arguments. Unknown arguments are
// refused.
func add[A any](c *Console, name, doc string, run func(ctx context.Context, a A) (any, error)) {
	c.commands[name] = command{doc: doc, fields: fieldsOf(reflect.TypeFor[A]()),
		run: func(ctx context.Context, args []byte) (any, error) {
			var a A
			in := json.NewDecoder(bytes.NewReader(args))
			in.DisallowUnknownFields()
			if err := in.Decode(&a); err != nil {
				return nil, fmt.Errorf("read arguments of %s: %w", name, err)
			}
			out, err := run(ctx, a)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return out, nil
		}}
}

// do registers a command that cannot fail and has no result.
func do[A any](c *Console, name, doc string, run func(a A)) {
	add(c, name, doc, func(_ context.Context, a A) (any, error) {
		run(a)
		return nil, nil
	})
}

// fieldsOf returns the JSON names of a struct's fields, including fields of embedded structs.
func fieldsOf(t reflect.Type) []string {
	names := []string{}
	for f := range t.Fields() {
		if f.Anonymous {
			names = append(names, fieldsOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Do runs a command. args is a JSON object, empty for no arguments. The result may be nil, and
// encodes as JSON.
func (c *Console) Do(ctx context.Context, name string, args []byte) (any, error) {
	cmd, ok := c.commands[name]
	if !ok {
		return nil, fmt.Errorf("no command %q: GET %s lists them", name, Prefix)
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	return cmd.run(ctx, args)
}

// Help returns all commands, by name.
func (c *Console) Help() []Usage {
	out := make([]Usage, 0, len(c.commands))
	for name, cmd := range c.commands {
		out = append(out, Usage{name, cmd.doc, cmd.fields})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Usage describes a command.
type Usage struct {
	Name      string   `json:"name"`
	Does      string   `json:"does"`
	Arguments []string `json:"arguments"`
}

// maxArguments is the largest request, in bytes: the check of a long test has many deliveries.
const maxArguments = 256 << 20

// ServeHTTP runs commands: POST Prefix + name with a JSON object as body; GET Prefix returns the
// list. Every reply is a JSON object.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if name == "" && r.Method == http.MethodGet {
		respond(w, http.StatusOK, map[string]any{"commands": c.Help()})
		return
	}
	if r.Method != http.MethodPost {
		respond(w, http.StatusMethodNotAllowed, map[string]any{"error": "use POST to run a command"})
		return
	}
	args, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArguments))
	if err != nil {
		respond(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	result, err := c.Do(r.Context(), name, args)
	switch {
	case err != nil:
		respond(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
	case result == nil:
		respond(w, http.StatusOK, map[string]any{"ok": true})
	default:
		respond(w, http.StatusOK, map[string]any{"ok": true, "result": result})
	}
}

// respond writes a reply.
func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only when the client has disconnected
}

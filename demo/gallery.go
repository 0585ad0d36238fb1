package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// mappings are the worked examples of the mapping language, as package transform tests them.
//
//go:embed mappings/*.yaml
var mappings embed.FS

// Secrets are the environment variables that the mappings name; the demo sets them for itself and
// the replicator.
var Secrets = map[string]string{"MAIL_KEY": "a secret for the demo"}

// Example is a worked example: a table with a mapping of its own, and an application whose items
// match the mapping's patterns.
type Example struct {
	Source, Target string
	Mapping        string // file in the directory of WriteMappings
	View           string // of the stream; "": both images
	TTL            string // attribute; "": no time to live

	keys []string // "pk:S", partition key first
	item func(g *gen) []attribute
}

// WriteMappings writes the examples' mapping files into a directory.
func WriteMappings(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory of mappings: %w", err)
	}
	for _, e := range Examples {
		data, err := fs.ReadFile(mappings, "mappings/"+e.Mapping)
		if err != nil {
			return fmt.Errorf("find mapping: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.Mapping), data, 0o600); err != nil {
			return fmt.Errorf("write mapping: %w", err)
		}
	}
	return nil
}

// create makes the example's table.
func (e *Example) create(sb *sandbox.Sandbox) error {
	var attributes, schema []string
	for i, key := range e.keys {
		name, typ, _ := strings.Cut(key, ":")
		attributes = append(attributes, fmt.Sprintf(`{"AttributeName":%q,"AttributeType":%q}`, name, typ))
		schema = append(schema, fmt.Sprintf(`{"AttributeName":%q,"KeyType":%q}`, name, []string{"HASH", "RANGE"}[i]))
	}
	view := e.View
	if view == "" {
		view = "NEW_AND_OLD_IMAGES"
	}
	err := call(sb, "CreateTable", fmt.Sprintf(`{"TableName":%q,"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[%s],"KeySchema":[%s],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":%q}}`,
		e.Source, strings.Join(attributes, ","), strings.Join(schema, ","), view))
	if err != nil || e.TTL == "" {
		return err
	}
	return call(sb, "UpdateTimeToLive", fmt.Sprintf(
		`{"TableName":%q,"TimeToLiveSpecification":{"Enabled":true,"AttributeName":%q}}`, e.Source, e.TTL))
}

// Gallery runs the applications of all examples concurrently.
type Gallery struct {
	Sandbox *sandbox.Sandbox
	Seed    uint64
	Rate    float64 // calls a second, all examples together

	calls atomic.Int64
}

// Calls returns how many writes were made so far.
func (w *Gallery) Calls() int64 { return w.calls.Load() }

// Create makes the tables of all examples.
func (w *Gallery) Create() error {
	for i := range Examples {
		if err := Examples[i].create(w.Sandbox); err != nil {
			return fmt.Errorf("create %s: %w", Examples[i].Source, err)
		}
	}
	return nil
}

// Run writes to all tables until ctx ends, and returns nil then.
func (w *Gallery) Run(ctx context.Context) error {
	limit := rate.NewLimiter(rate.Limit(w.Rate), len(Examples))
	g, ctx := errgroup.WithContext(ctx)
	for i := range Examples {
		g.Go(func() error {
			now := func() int64 { return w.Sandbox.Clock.Now().Unix() }
			r := &gen{Rand: rand.New(rand.NewPCG(w.Seed, uint64(1000+i))), now: now}
			for limit.Wait(ctx) == nil {
				if err := Examples[i].write(w.Sandbox, r); err != nil {
					return fmt.Errorf("write to %s: %w", Examples[i].Source, err)
				}
				w.calls.Add(1)
			}
			return nil
		})
	}
	return g.Wait()
}

// write puts a whole item, sets one attribute of an item that exists, or deletes.
func (e *Example) write(sb *sandbox.Sandbox, g *gen) error {
	item := e.item(g)
	key, rest := item[:len(e.keys)], item[len(e.keys):]
	switch n := g.IntN(10); {
	case n < 6 || len(rest) == 0 && n < 8:
		return call(sb, "PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{%s}}`, e.Source, join(item)))
	case n < 8:
		a := rest[g.IntN(len(rest))]
		return call(sb, "UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s},"UpdateExpression":"SET #a = :v",
			"ConditionExpression":"attribute_exists(#k) AND attribute_exists(#a)",
			"ExpressionAttributeNames":{"#k":%q,"#a":%q},"ExpressionAttributeValues":{":v":%s}}`,
			e.Source, join(key), key[0].name, a.name, a.value))
	default:
		return call(sb, "DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s}}`, e.Source, join(key)))
	}
}

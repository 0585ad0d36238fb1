package control

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// wireFault has the arguments that every fault on the wire takes.
type wireFault struct {
	Operation string  `json:"operation"`
	Times     int     `json:"times"`
	Odds      float64 `json:"odds"`
}

// rule returns the rule of an effect with these arguments.
func (s wireFault) rule(e fault.Effect) fault.Rule {
	return fault.Rule{Effect: e, Operation: s.Operation, Times: s.Times, Odds: s.Odds}
}

// allOrNamed ends the description of every fault on the wire.
const allOrNamed = "; every operation unless one is named, until calm unless times is given"

// wireCommands registers the faults of DynamoDB's HTTP replies that have arguments of their own.
func (c *Console) wireCommands() {
	add(c, "error", "refuses requests with an error code"+allOrNamed, func(_ context.Context, a struct {
		wireFault
		Code   string `json:"code"`
		Status int    `json:"status"`
	}) (any, error) {
		r := a.rule(fault.Error)
		r.Code, r.Status = a.Code, a.Status
		return nil, c.HTTP.Inject(r)
	})
	add(c, "throttle", "refuses requests beyond a rate"+allOrNamed, func(_ context.Context, a struct {
		wireFault
		Code      string  `json:"code"`
		PerSecond float64 `json:"per_second"`
	}) (any, error) {
		r := a.rule(fault.Throttle)
		r.Code, r.PerSecond = a.Code, a.PerSecond
		return nil, c.HTTP.Inject(r)
	})
	add(c, "latency", "delays requests by delay plus up to jitter; tail_odds of them by tail"+allOrNamed,
		func(_ context.Context, a struct {
			wireFault
			Delay    Span    `json:"delay"`
			Jitter   Span    `json:"jitter"`
			Tail     Span    `json:"tail"`
			TailOdds float64 `json:"tail_odds"`
		}) (any, error) {
			r := a.rule(fault.Latency)
			r.Delay, r.Jitter, r.Tail, r.TailOdds = a.Delay.d(), a.Jitter.d(), a.Tail.d(), a.TailOdds
			return nil, c.HTTP.Inject(r)
		})
	add(c, "stall", "sends half of the reply and the rest after a while"+allOrNamed, func(_ context.Context, a struct {
		wireFault
		forSpan
	}) (any, error) {
		r := a.rule(fault.Stall)
		r.Delay = a.For.d()
		return nil, c.HTTP.Inject(r)
	})
	add(c, "shift_date", "shifts the Date header of the reply"+allOrNamed, func(_ context.Context, a struct {
		wireFault
		By Span `json:"by"`
	}) (any, error) {
		r := a.rule(fault.ShiftDate)
		r.By = a.By.d()
		return nil, c.HTTP.Inject(r)
	})
}

// plainWireCommands registers the faults of DynamoDB's HTTP replies that take no other arguments.
func (c *Console) plainWireCommands() {
	for effect, doc := range map[fault.Effect]string{
		fault.Cut:      "sends half of the reply and closes the connection",
		fault.Reset:    "carries the request out, then resets the connection",
		fault.Expired:  "refuses the credentials as expired",
		fault.Truncate: "sends half of the body as if it were the whole",
		fault.NoDate:   "leaves the Date header out of the reply",
	} {
		add(c, string(effect), doc+allOrNamed, func(_ context.Context, a wireFault) (any, error) {
			return nil, c.HTTP.Inject(a.rule(effect))
		})
	}
}

// httpCommands registers what is set for all HTTP replies, and the end of faults.
func (c *Console) httpCommands() {
	do(c, "withdraw", "withdraws the faults of an effect, of an operation, or both", func(a struct {
		Effect    fault.Effect `json:"effect"`
		Operation string       `json:"operation"`
	}) {
		c.HTTP.Withdraw(a.Effect, a.Operation)
	})
	do(c, "gzip", "compresses replies for clients that accept it", func(a onOff) { c.HTTP.Gzip(a.on()) })
	do(c, "skew", "shifts the clock that Date headers and check_time show", func(a struct {
		By Span `json:"by"`
	}) {
		c.HTTP.Skew(a.By.d())
	})
	do(c, "check_time", "refuses requests signed more than five minutes from the server's time",
		func(a onOff) { c.HTTP.CheckTime(a.on()) })
}

// timeCommands registers the commands of the clock, and calm.
func (c *Console) timeCommands() {
	add(c, "advance", "moves the sandbox's clock, also back", func(_ context.Context, a struct {
		By Span `json:"by"`
	}) (any, error) {
		c.Clock.Advance(a.By.d())
		return c.clockState(), nil
	})
	add(c, "freeze", "stops the sandbox's clock: it moves by advance only", func(context.Context, struct{}) (any, error) {
		c.Clock.Freeze()
		return c.clockState(), nil
	})
	add(c, "clock", "shows the sandbox's clock", func(context.Context, struct{}) (any,
		error) {
		return c.clockState(), nil
	})
	add(c, "expire", "deletes the items whose time to live has passed", func(context.Context, struct{}) (any, error) {
		return map[string]int{"expired": c.Expire(c.Clock.Now())}, nil
	})
	do(c, "calm", "withdraws all faults of all servers", func(struct{}) {
		c.HTTP.Calm()
		c.Stream.Faults().Calm()
		c.DynamoDB.Calm()
		c.Stream.RotateNever()
		if c.Bigtable != nil {
			c.Bigtable.Faults.Calm()
		}
	})
}

// clockState returns the result of the clock's commands.
func (c *Console) clockState() any {
	return map[string]any{"now": c.Clock.Now().Format(time.RFC3339Nano), "frozen": c.Clock.Virtual()}
}

// ledgerCommands registers the commands of the ledger.
func (c *Console) ledgerCommands() {
	add(c, "ledger", "counts the changes per table", func(context.Context, struct{}) (any, error) {
		type counts struct {
			Committed int `json:"committed"`
			Streamed  int `json:"streamed"`
		}
		out := map[string]counts{}
		for _, name := range c.Ledger.Tables() {
			all, streamed := c.Ledger.Count(name)
			out[name] = counts{all, streamed}
		}
		return out, nil
	})
	add(c, "changes", "lists the changes of a table in the order of their commits, from a number on", c.changes)
	add(c, "check", "compares deliveries with what was committed: each change once, in order per item",
		func(_ context.Context, a struct {
			Tables     []string          `json:"tables"`
			Deliveries []ledger.Delivery `json:"deliveries"`
		}) (any, error) {
			return c.Ledger.Check(a.Deliveries, a.Tables...), nil
		})
}

// changes returns the lines of the ledger from a number on, at most limit of them.
func (c *Console) changes(_ context.Context, a struct {
	Table string `json:"table"`
	From  int    `json:"from"`
	Limit int    `json:"limit"`
}) (any, error) {
	if a.Table == "" || a.From < 0 || a.Limit < 0 {
		return nil, fmt.Errorf("want a table, and from and limit of at least 0")
	}
	if a.Limit == 0 {
		a.Limit = 1000
	}
	out, at := []ledger.Change{}, 0
	c.Ledger.Changes(a.Table, func(ch ledger.Change) bool {
		if at >= a.From {
			out = append(out, ch)
		}
		at++
		return len(out) < a.Limit
	})
	return out, nil
}

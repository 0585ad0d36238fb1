package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

// codeOf returns the gRPC code of a name such as "UNAVAILABLE"; an empty name is otherwise.
func codeOf(name string, otherwise codes.Code) (codes.Code, error) {
	if name == "" {
		return otherwise, nil
	}
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(`"` + strings.ToUpper(name) + `"`)); err != nil {
		return c, fmt.Errorf("code %q: want a gRPC code such as UNAVAILABLE", name)
	}
	return c, nil
}

// bigtableCommands registers the faults of Bigtable's calls.
func (c *Console) bigtableCommands() {
	x := c.Bigtable.Faults
	do(c, "bigtable_odds", "makes writes fail at random: refused, ambiguous (applied, reported failed), late (reported "+
		"failed, applied later)", x.Random)
	add(c, "bigtable_next", "makes the next n writing calls fail: kind refuse, ambiguous or late",
		func(_ context.Context, a struct {
			Kind bigtable.Kind `json:"kind"`
			N    int           `json:"n"`
		}) (any, error) {
			switch a.Kind {
			case bigtable.Refuse, bigtable.Ambiguous, bigtable.Late:
				x.Next(a.Kind, max(a.N, 1))
				return nil, nil
			}
			return nil, fmt.Errorf("kind %q: want refuse, ambiguous or late", a.Kind)
		})
	add(c, "bigtable_code", "sets the code of injected failures; UNAVAILABLE at first", func(_ context.Context, a struct {
		Code string `json:"code"`
	}) (any, error) {
		code, err := codeOf(a.Code, codes.Unavailable)
		if err == nil {
			x.Code(code)
		}
		return nil, err
	})
	do(c, "bigtable_late_by", "sets how long after its failure a late write is applied",
		func(a forSpan) { x.LateBy(a.For.d()) })
	do(c, "bigtable_hold_late", "keeps late writes back until they are released", func(struct{}) { x.HoldLate() })
	do(c, "bigtable_release_late", "applies the late writes that are held back", func(struct{}) { x.ReleaseLate() })
	do(c, "bigtable_outage", "refuses every call with UNAVAILABLE for a span of real time; 0s is until bigtable_recover",
		func(a forSpan) { x.Outage(a.For.d()) })
	do(c, "bigtable_recover", "ends an outage", func(struct{}) { x.Recover() })
	do(c, "bigtable_latency", "delays every call by delay plus up to jitter", func(a struct {
		Delay  Span `json:"delay"`
		Jitter Span `json:"jitter"`
	}) {
		x.Latency(a.Delay.d(), a.Jitter.d())
	})
	c.bigtableRowCommands()
}

// bigtableRowCommands registers the faults of single rows and profiles, and garbage collection.
func (c *Console) bigtableRowCommands() {
	x := c.Bigtable.Faults
	add(c, "bigtable_refuse_row", "refuses writes to rows whose keys have a prefix, n times or until calm",
		func(_ context.Context, a struct {
			Prefix string `json:"prefix"`
			Code   string `json:"code"`
			Times  int    `json:"times"`
		}) (any, error) {
			code, err := codeOf(a.Code, codes.InvalidArgument)
			if err != nil {
				return nil, err
			}
			if a.Times == 0 {
				a.Times = -1
			}
			x.RefuseRow([]byte(a.Prefix), code, a.Times)
			return nil, nil
		})
	do(c, "bigtable_multi_cluster", "makes an app profile refuse single-row transactions", func(a struct {
		Profile string `json:"profile"`
	}) {
		x.MultiCluster(a.Profile)
	})
	do(c, "bigtable_replicated", "refuses GC rules by age that keep more, unless warnings are ignored",
		func(a onOff) { x.Replicated(a.on()) })
	add(c, "bigtable_refuse_settings",
		"refuses calls that ask for families, GC rules and app profiles, n times or until calm",
		func(_ context.Context, a struct {
			Code  string `json:"code"`
			Times int    `json:"times"`
		}) (any, error) {
			code, err := codeOf(a.Code, codes.PermissionDenied)
			if err != nil {
				return nil, err
			}
			x.RefuseSettings(code, cmp.Or(a.Times, -1))
			return nil, nil
		})
	do(c, "bigtable_in_order", "applies the entries of bulk calls in order, which the service does not promise",
		func(a onOff) { x.InOrder(a.on()) })
	add(c, "bigtable_collect", "collects garbage by the tables' rules and the sandbox's clock",
		func(ctx context.Context, _ struct{}) (any, error) {
			n, err := c.Bigtable.Collect(ctx)
			return map[string]int{"cells": n}, err
		})
}

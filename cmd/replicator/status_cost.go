package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// describing is how long the services have to describe all tables and the instance: what they do
// not describe in time is left out.
const describing = 20 * time.Second

// statusCost prints what the tables cost: what the daemon has measured, what an idle month costs,
// and the storage, as far as the services describe it.
func (a *app) statusCost(
	ctx context.Context, cfg *config.Config, tables []config.Table, c *clients.Clients, s pipeline.Status,
) error {
	r := render.Costs{
		Schema: schema, Pipeline: s.Pipeline, Total: status.Total(s.Tables), Tables: []render.TableCost{},
		Prices: price.Assumed(),
	}
	for i := range s.Tables {
		st := &s.Tables[i]
		row := render.TableCost{Source: st.Source, Target: st.Target, Owner: st.Owner, Cost: st.Cost}
		for j := range tables {
			if tables[j].Source == st.Source {
				row.Idle = clients.IdleCost(cfg, &tables[j], st.Shards.Open)
			}
		}
		r.Idle.Shards, r.Idle.Reads = r.Idle.Shards+row.Idle.Shards, r.Idle.Reads+row.Idle.Reads
		r.Tables = append(r.Tables, row)
	}
	r.Idle.Dollars = price.Cents(price.StreamReadDollars(r.Idle.Reads))
	asking, cancel := context.WithTimeout(ctx, describing)
	defer cancel()
	if err := a.sizes(asking, c, &r); err != nil {
		fmt.Fprintf(a.Errs, "%s: the sizes of the tables are not known: %v\n", a.Path, err)
	}
	if err := a.instance(asking, c, &r); err != nil {
		fmt.Fprintf(a.Errs, "%s: the nodes of the instance are not known: %v\n", a.Path, err)
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	a.Printed = true
	return render.Cost(a.Out, &r)
}

// sizes adds the sizes of the tables as DynamoDB describes them, and what they take in Bigtable.
func (a *app) sizes(ctx context.Context, c *clients.Clients, r *render.Costs) error {
	src, err := c.Source(ctx)
	if err != nil {
		return err
	}
	var all float64
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Target == "" {
			continue
		}
		info, err := src.Table(ctx, t.Source)
		if err != nil {
			return err
		}
		t.Bytes = &info.Bytes
		all += float64(info.Bytes)
	}
	r.Storages = price.Choices(r.Total.Writes, all)
	r.Bytes = int64(all)
	return nil
}

// instance adds the edition and the clusters. An emulator has none.
func (a *app) instance(ctx context.Context, c *clients.Clients, r *render.Costs) error {
	sink, err := c.Bigtable(ctx)
	if err != nil {
		return err
	}
	found, err := sink.DescribeInstance(ctx)
	if errors.Is(err, bigtable.ErrNoInstance) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Instance = &render.InstanceCost{Instance: found}
	for _, x := range found.Clusters {
		r.Instance.Dollars += price.NodeDollars(float64(x.Nodes))
	}
	return nil
}

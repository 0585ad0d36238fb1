package preflight

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// Prices are the list prices that an estimate assumes, in dollars. They are not requested from AWS:
// its pages fill in their prices in the browser, so users must compare them before they rely on an
// estimate.
type Prices struct {
	Region       string  `json:"region"`
	AsOf         string  `json:"as_of"` // of reading; the other two are not confirmed by a dated page
	MillionUnits float64 `json:"million_read_units"`
	ExportedGB   float64 `json:"exported_gb"`
	StoredGB     float64 `json:"stored_gb_month"`
}

// assumed is the one place where the prices are; docs/backfill.md repeats them.
var assumed = Prices{
	// Standard table class. Other regions cost up to about twice as much.
	Region: "us-east-1",
	// Halved on 2024-11-01. https://aws.amazon.com/dynamodb/pricing/on-demand/ has the current one;
	// it was confirmed with https://airbyte.com/data-engineering-resources/dynamodb-pricing of
	// 2025-07-21.
	AsOf: "2024-11-01", MillionUnits: 0.125,
	// "Data export to Amazon S3", by the size of the table: look it up under
	// https://aws.amazon.com/dynamodb/pricing/on-demand/
	ExportedGB: 0.10,
	// S3 Standard, the first 50 TB, for a month: look it up under
	// https://aws.amazon.com/s3/pricing/
	StoredGB: 0.023,
}

// PriceNote describes what the dollars of an estimate are, and where to change the prices.
func PriceNote() string {
	return fmt.Sprintf("dollars: assumed list prices of %s, not asked from AWS: %g for a million read units (as of %s), "+
		"%g for a GB exported and %g for a GB in S3 for a month (both not confirmed); other regions cost up to about "+
		"twice as much; docs/backfill.md says where to compare and to change them",
		assumed.Region, assumed.MillionUnits, assumed.AsOf, assumed.ExportedGB, assumed.StoredGB)
}

const (
	unitBytes     = 4096 // that a read unit reads strongly consistently
	copyItemBytes = 1024 // larger items count as several
)

// CopyEstimate is what copying the items of a table takes, by scan and by export side by side.
type CopyEstimate struct {
	From       string       `json:"from"` // what the configuration chooses: scan, export or none
	Items      int64        `json:"items"`
	Bytes      int64        `json:"bytes"`
	Billing    string       `json:"billing"`
	ReadBudget float64      `json:"read_units_per_s"`
	Recovery   string       `json:"point_in_time_recovery"` // on, off or unknown
	Scan       *WayEstimate `json:"scan"`
	Export     *WayEstimate `json:"export"`
	Prices     Prices       `json:"prices"` // that the dollars assume
}

// WayEstimate is what one way of copying takes.
type WayEstimate struct {
	ReadUnits int64   `json:"read_units"`
	Dollars   float64 `json:"dollars"`
	Hours     float64 `json:"hours"`
	Note      string  `json:"note"`
}

// readBudget returns how many read units a second a copy may take. A budget that the table cannot
// have is reported elsewhere; it counts as the default here.
func readBudget(info *source.TableInfo, b *config.Backfill) float64 {
	budget, err := info.ReadUnitsFor(b.ReadUnits.Absolute, b.ReadUnits.Percent)
	if err != nil {
		return source.DefaultReadUnits
	}
	return budget
}

// weight returns how many items of 1 KB one of the given size counts as.
func weight(itemBytes float64) float64 { return max(1, itemBytes/copyItemBytes) }

// EstimateCopy estimates the copy of a table from its description, which has counts up to six hours
// old.
func EstimateCopy(info *source.TableInfo, b config.Backfill) *CopyEstimate {
	budget := readBudget(info, &b)
	e := &CopyEstimate{
		From: b.From, Items: info.Items, Bytes: info.Bytes, Billing: "on demand", ReadBudget: budget, Recovery: "unknown",
		Prices: assumed,
	}
	if e.From == "" {
		e.From = "scan"
	}
	gb := float64(info.Bytes) / (1 << 30)
	units := (info.Bytes + unitBytes - 1) / unitBytes
	e.Scan = &WayEstimate{
		ReadUnits: units, Dollars: float64(units) / 1e6 * assumed.MillionUnits,
		Note: "at " + humanize.Commaf(budget) + " read units/s",
	}
	if b.ReadUnits == (config.Units{}) {
		e.Scan.Note += ", the default"
	}
	if info.ReadUnits > 0 {
		e.Billing = "provisioned"
		e.Scan.Dollars = 0
		e.Scan.Note += fmt.Sprintf("; of %s, which are paid for already", humanize.Commaf(info.ReadUnits))
	}
	writing := writeSeconds(info, b)
	e.Scan.Hours = max(float64(units)/budget, writing) / 3600
	e.Export = &WayEstimate{
		Dollars: gb * (assumed.ExportedGB + assumed.StoredGB), Hours: writing / 3600,
		Note: "once the export is complete (minutes to hours); S3 for a month",
	}
	return e
}

// CopySentence describes the cost of copying the items of a table by scan, with the default budget.
func CopySentence(info *source.TableInfo) string {
	return EstimateCopy(info, config.Backfill{}).Sentence()
}

// ResyncCost describes the cost of reading a whole table once for a resync, and returns its hours.
func ResyncCost(info *source.TableInfo, b config.Backfill) (what string, hours float64) {
	e := EstimateCopy(info, b)
	what = fmt.Sprintf("that reads about %s (%s, %s read units) %s",
		english.Plural(int(e.Items), "item", ""), humanize.IBytes(uint64(e.Bytes)), humanize.Comma(e.Scan.ReadUnits),
		e.Scan.Note)
	return what, e.Scan.Hours
}

// writeSeconds returns how long it takes to write the items of a table, however they are read.
func writeSeconds(info *source.TableInfo, b config.Backfill) float64 {
	seconds := 0.0
	if info.Items > 0 {
		seconds = float64(info.Items) * weight(float64(info.Bytes)/float64(info.Items)) / itemsPerProcessor
	}
	if b.WriteRows > 0 {
		seconds = max(seconds, float64(info.Items)/float64(b.WriteRows))
	}
	return seconds
}

// dollars returns what the configured way costs.
func (e *CopyEstimate) dollars() float64 {
	switch e.From {
	case "none":
		return 0
	case "export":
		return e.Export.Dollars
	}
	return e.Scan.Dollars
}

// Way is a way of copying, with its name in the configuration.
type Way struct {
	Name string
	*WayEstimate
}

// Ways returns both ways of copying.
func (e *CopyEstimate) Ways() []Way { return []Way{{"scan", e.Scan}, {"export", e.Export}} }

// Sentence describes the cost of the copy that begins with the next run; "" if none does.
func (e *CopyEstimate) Sentence() string {
	way := e.Scan
	switch e.From {
	case "none":
		return ""
	case "export":
		way = e.Export
	}
	dollars, hours := "about "+way.DollarsText()+" dollars", "about "+way.HoursText()+" hours"
	if way.Dollars < 0.005 {
		dollars = "less than a cent"
	}
	if way.Hours < 0.1 {
		hours = "less than ten minutes"
	}
	return fmt.Sprintf("copies about %s (%s) by %s: %s, %s", english.Plural(int(e.Items), "item", ""),
		humanize.IBytes(uint64(e.Bytes)), e.From, dollars, hours)
}

// DollarsText returns the dollars with cents.
func (w *WayEstimate) DollarsText() string {
	return humanize.CommafWithDigits(math.Round(w.Dollars*100)/100, 2)
}

// HoursText returns the hours, to a tenth below ten.
func (w *WayEstimate) HoursText() string {
	switch h := w.Hours; {
	case h < 0.1:
		return "0.1"
	case h < 10:
		return fmt.Sprintf("%.1f", h)
	}
	return humanize.Comma(int64(math.Round(w.Hours)))
}

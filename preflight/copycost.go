package preflight

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/source"
)

// PriceNote describes what the dollars of an estimate are, and where to change the prices.
func PriceNote() string {
	p := price.Assumed()
	return fmt.Sprintf("dollars: assumed list prices of %s, not asked from AWS: %g for a million read units (as of %s), "+
		"%g for a GB exported, %g for a GB in S3 for a month and %g for a GB out of AWS (these not confirmed); other "+
		"regions cost up to about twice as much; docs/backfill.md says where to compare and to change them",
		p.Region, p.MillionUnits, p.AsOf, p.ExportedGB, p.StoredGB, p.OutgoingGB)
}

const (
	unitBytes     = 4096 // that a read unit reads strongly consistently
	copyItemBytes = 1024 // of an item of a table that is empty yet
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
	Prices     price.List   `json:"prices"` // that the dollars assume
}

// WayEstimate is what one way of copying takes.
type WayEstimate struct {
	ReadUnits int64   `json:"read_units"`
	Dollars   float64 `json:"dollars"`
	// Transfer is what the way from AWS to the other cloud costs beside Dollars, by the size of the
	// table: rows have about that size, and so have the items of a scan on the wire.
	Transfer float64 `json:"transfer_dollars"`
	Hours    float64 `json:"hours"`
	Note     string  `json:"note"`
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

// EstimateCopy estimates the copy of a table from its description, which has counts up to six hours
// old.
func EstimateCopy(info *source.TableInfo, b config.Backfill) *CopyEstimate {
	budget := readBudget(info, &b)
	e := &CopyEstimate{
		From: b.From, Items: info.Items, Bytes: info.Bytes, Billing: "on demand", ReadBudget: budget, Recovery: "unknown",
		Prices: price.Assumed(),
	}
	if e.From == "" {
		e.From = "scan"
	}
	bytes := float64(info.Bytes)
	units := (info.Bytes + unitBytes - 1) / unitBytes
	e.Scan = &WayEstimate{
		ReadUnits: units, Dollars: price.ReadUnitDollars(float64(units)), Transfer: price.TransferDollars(bytes),
		Note: "at " + humanize.Commaf(budget) + " read units/s",
	}
	if b.ReadUnits == (config.Units{}) {
		e.Scan.Note += ", the default"
	}
	if info.ReadUnits > 0 {
		e.Billing = "provisioned"
		e.Scan.Dollars = 0
		e.Scan.Note += fmt.Sprintf("; of %s, paid for already", humanize.Commaf(info.ReadUnits))
	}
	writing := writeSeconds(info, b)
	e.Scan.Hours = max(float64(units)/budget, writing) / 3600
	e.Export = &WayEstimate{
		Dollars: price.ExportDollars(bytes), Transfer: price.TransferDollars(bytes), Hours: writing / 3600,
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
		seconds = float64(info.Items) * limit.Weight(float64(info.Bytes)/float64(info.Items)) / itemsPerProcessor
	}
	if b.WriteRows > 0 {
		seconds = max(seconds, float64(info.Items)/float64(b.WriteRows))
	}
	return seconds
}

// chosen returns the configured way; nil if nothing is copied.
func (e *CopyEstimate) chosen() *WayEstimate {
	switch e.From {
	case "none":
		return nil
	case "export":
		return e.Export
	}
	return e.Scan
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
	way := e.chosen()
	if way == nil {
		return ""
	}
	dollars, hours := "about "+way.DollarsText()+" dollars", "about "+way.HoursText()+" hours"
	if way.Dollars < 0.005 {
		dollars = "less than a cent"
	}
	if way.Transfer >= 0.005 {
		dollars += ", " + way.TransferText() + " more for the way out of AWS"
	}
	if way.Hours < 0.1 {
		hours = "less than ten minutes"
	}
	return fmt.Sprintf("copies about %s (%s) by %s: %s, %s", english.Plural(int(e.Items), "item", ""),
		humanize.IBytes(uint64(e.Bytes)), e.From, dollars, hours)
}

// DollarsText returns the dollars with cents.
func (w *WayEstimate) DollarsText() string { return DollarsText(w.Dollars) }

// TransferText returns the dollars of the transfer with cents.
func (w *WayEstimate) TransferText() string { return DollarsText(w.Transfer) }

// DollarsText returns dollars with cents.
func DollarsText(dollars float64) string { return humanize.CommafWithDigits(price.Cents(dollars), 2) }

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

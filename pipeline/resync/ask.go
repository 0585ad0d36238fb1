package resync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// Exporter makes exports: *source.Source.
type Exporter interface {
	StartExport(ctx context.Context, r source.ExportRequest) (arn string, err error)
	ExportStatus(ctx context.Context, arn string) (source.ExportStatus, error)
}

// ask opens the export that exists, or has the table exported and waits for that, and stores in the
// log what is copied then. A failure is tried again: the stream does not need the copy.
func (c *Copier) ask(ctx context.Context) (*checkpoint.CopyState, error) {
	paid := 0
	for n := 1; ; n++ {
		e, err := c.awaitExport(ctx)
		if err == nil {
			why := c.refuses(e.Time)
			if why != "" && c.o.Exports.URL != "" {
				return nil, c.pause(why + newerExport)
			}
			err = ofNoUse(why)
		}
		if err == nil {
			body := CopyOf(c.copy.Copy, e)
			if err := c.o.Append(ctx, body); err != nil {
				return nil, fmt.Errorf("store what the export holds: %w", err)
			}
			return &checkpoint.CopyState{Copy: *body}, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, errNotMade) || errors.Is(err, errUseless) || source.Classify(err) == failure.Rejected {
			// The same request would not help.
			c.asked++
		}
		c.setWaits("") // or that an export is being made would hide the error
		c.setTrouble(noPart, whyOf(err))
		c.o.Logger.Error("there is no export to copy yet: will be tried again", zap.Error(err))
		pause := failure.Backoff(n)
		if pause > lastRetry/2 {
			pause = c.o.Periods.Report
		}
		if errors.Is(err, errUseless) { // which was paid for
			pause = max(pause, c.o.Periods.Report<<min(paid, 9))
			paid++
		}
		if err := failure.Pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// awaitExport opens the existing export, or requests one and waits until it is complete. The same
// request returns the same export for eight hours, so a restart requests no second one. An export
// that is unusable, because it is altered or shows too early a moment, is replaced by another
// request.
func (c *Copier) awaitExport(ctx context.Context) (*export.Export, error) {
	x := &c.o.Exports
	switch {
	case x.URL != "":
		return x.Open(ctx, x.URL)
	case x.Bucket == "":
		return nil, errNoExport
	}
	if err := c.awaitEarliest(ctx); err != nil {
		return nil, err
	}
	arn, err := x.StartExport(ctx, source.ExportRequest{
		TableARN: c.o.Info.ARN, Bucket: x.Bucket, Prefix: x.Prefix, ClientToken: exportToken(c.o, c.copy.ID, c.asked),
	})
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		st, err := x.ExportStatus(ctx, arn)
		switch {
		case err != nil:
			return nil, err
		case st.Failure() != nil:
			return nil, fmt.Errorf("%w: %w", errNotMade, st.Failure())
		case !st.Time.IsZero():
			if err := ofNoUse(c.refuses(change.MillisOf(st.Time))); err != nil { // to wait for its end would be in vain
				return nil, err
			}
		}
		if st.Status == source.ExportCompleted {
			c.setWaits("")
			e, err := x.Open(ctx, st.URL)
			if source.Classify(err) == failure.Rejected {
				err = fmt.Errorf("%w: %w", errUseless, err)
			}
			return e, err
		}
		if since := st.Started; !since.IsZero() {
			began = since
		}
		c.setWaits(fmt.Sprintf("DynamoDB exports the table since %s (%s)", began.UTC().Format(time.RFC3339), arn))
		if err := failure.Pause(ctx, c.o.Periods.Poll); err != nil {
			return nil, err
		}
	}
}

// awaitEarliest waits for the first moment that an export may show: it must lie within the stream
// and after its gaps. An export requested without a time shows the moment of the request. If it
// were requested as soon as the stream was enabled, it would be too early, and paid for.
func (c *Copier) awaitEarliest(ctx context.Context) error {
	for {
		earliest := protocol.EarliestExport(max(c.o.Exports.Cover, c.o.GapsUntil()+1)) + protocol.DateStep
		left := time.Duration(earliest-c.o.Now()) * time.Millisecond
		if left <= 0 {
			return nil
		}
		c.setWaits("the table is exported as of " + earliest.Time().UTC().Format(time.RFC3339) +
			": what an earlier export lacks could be missing in the stream")
		if err := failure.Pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// refuses returns why an export of a moment cannot be copied now; empty when it can.
func (c *Copier) refuses(at change.Millis) string {
	return protocol.CheckExport(at, c.o.Exports.Cover, c.o.GapsUntil(), c.o.Now())
}

// ofNoUse returns why an export that the copy asked for cannot be copied, as an error; nil for an
// empty reason. Another one, asked for later, can.
func ofNoUse(why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", errUseless, why)
}

var (
	errNoExport = errors.New(
		"the table was started with a copy of an export, and backfill names neither url nor bucket")
	errNotMade = errors.New("DynamoDB has not made the export")
	errUseless = errors.New("the export that was asked for is of no use")
)

// exportToken names the export of one life of a table that is asked for after so many others. It
// depends on where the export is written, because the service refuses a known token with another
// bucket.
func exportToken(o *Options, copyID string, asked int) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		o.Pipeline, o.Info.ID, strconv.FormatUint(o.Number, 10), copyID, o.Exports.Bucket, o.Exports.Prefix,
		strconv.Itoa(asked),
	}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

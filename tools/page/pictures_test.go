package page

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/chromedp/chromedp"
)

// lasting is how long a state has lasted when its picture is taken: by then all rows show it.
const lasting = 20 * time.Second

// margin is what a picture shows below its last element, in pixels: less than stands before the
// next.
const margin = 6

// TestPictures writes the pictures of docs/pictures into the directory PICTURES. So that the charts
// of the shop are full, its writers write for PICTURES_FOR (default: an hour) before the first
// picture.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no directory; `make pictures` does")
	}
	period, err := time.ParseDuration(cmp.Or(os.Getenv("PICTURES_FOR"), "1h"))
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t)
	chromium := browser(t)
	s.until("the replicator is healthy", func() bool { return s.answers("/readyz") })
	for range 2 {
		<-time.After(period / 3)
		s.console("split", `{"table":"Orders","open":1,"n":2}`)
	}
	<-time.After(period / 3)
	a := &album{s, dir}
	front := s.open(chromium, "/")
	a.state(front, "Healthy")
	a.take(front, "healthy", 1280, "#tables table")
	a.take(front, "phone", 390, "#tables tbody tr")
	table := s.open(chromium, "/table/Orders")
	a.state(table, "Healthy")
	a.take(table, "table", 1280, "#shards")
	for _, provoke := range []func(*tab){
		a.throttled, a.copying, a.deadLetters, a.gap, a.bigtableAway, a.natsAway, a.halted,
	} {
		provoke(front)
	}
}

// album takes pictures of a shop.
type album struct {
	*shop
	dir string
}

func (a *album) throttled(front *tab) {
	a.console("throttle_shard", `{"table":"Orders","open":0,"per_second":0.5,"code":"ThrottlingException"}`)
	a.state(front, "Throttled")
	a.take(front, "throttled", 1280, "#tables table")
	a.console("throttle_shard", `{"table":"Orders","open":0}`)
	a.recovered(front)
}

// copying fills a table before it has a stream and the selection finds it.
func (a *album) copying(front *tab) {
	arn := a.createTable("Products", nil)
	for i := 0; i < 30_000; i += 25 {
		var batch []types.WriteRequest
		for j := range 25 {
			batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"id":   &types.AttributeValueMemberS{Value: fmt.Sprintf("product-%05d", i+j)},
				"text": &types.AttributeValueMemberS{Value: strings.Repeat("a product of the shop; ", 35)},
			}}})
		}
		if _, err := a.client.BatchWriteItem(a.t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{"Products": batch}}); err != nil {
			a.t.Fatal(err)
		}
	}
	if _, err := a.client.UpdateTable(a.t.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String("Products"), StreamSpecification: withStream}); err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.client.TagResource(a.t.Context(), &dynamodb.TagResourceInput{ResourceArn: &arn,
		Tags: []types.Tag{{Key: aws.String("replicate"), Value: aws.String("bigtable")}}}); err != nil {
		a.t.Fatal(err)
	}
	a.command("schema", "--apply")
	a.state(front, "Copying")
	a.until("a third is copied", func() bool {
		return front.text(`document.querySelector("progress")?.value >= 33`) == "true"
	})
	a.take(front, "copying", 1280, "#tables table")
	a.recovered(front)
}

func (a *album) deadLetters(front *tab) {
	for i := range 3 {
		a.mustPut("Customers", fmt.Sprintf("customer-1%04d", i), "12.5", 100) // the mapping wants a whole number
	}
	a.state(front, "Dead letters")
	a.take(front, "dead-letters", 1280, "#tables table")
	a.command("dlq", "drop", "--table", "Customers", "--yes")
	a.recovered(front)
}

// gap keeps a shard from being read until its records are trimmed.
func (a *album) gap(front *tab) {
	a.console("throttle_shard", `{"table":"Carts","open":0,"times":1000000,"code":"ThrottlingException"}`)
	a.state(front, "Throttled") // some changes wait unread
	a.console("trim", `{"older_than":"10s"}`)
	a.console("throttle_shard", `{"table":"Carts","open":0}`)
	a.state(front, "Gap")
	a.take(front, "gap", 1280, "#tables table")
	a.command("repair", "--gaps", "--table", "Carts")
	a.recovered(front)
}

// bigtableAway ends with a log that is full.
func (a *album) bigtableAway(front *tab) {
	a.bigtable.cut()
	a.state(front, "Bigtable away")
	a.take(front, "bigtable-away", 1280, "#tables table")
	a.until("the log is full", func() bool {
		a.mustPut("Sessions", fmt.Sprintf("upload-%08x", time.Now().UnixNano()), "1", 390_000)
		return strings.HasPrefix(front.title(), "Log full")
	})
	a.state(front, "Log full")
	a.take(front, "log-full", 1280, "#tables table")
	a.bigtable.restore()
	a.recovered(front)
}

func (a *album) natsAway(front *tab) {
	a.nats.cut()
	a.state(front, "NATS away")
	a.take(front, "nats-away", 1280, "#tables table")
	a.nats.restore()
	a.recovered(front)
}

// halted is the last: what is refused stays refused.
func (a *album) halted(front *tab) {
	a.mustPut("Invoices", "invoice-10000", "12.5", 100)
	a.state(front, "Halted")
	a.take(front, "halted", 1280, "#tables table")
}

// state waits until the page has shown a state for a while.
func (a *album) state(p *tab, state string) {
	a.t.Helper()
	var since time.Time
	a.until("the page shows "+state, func() bool {
		if !strings.HasPrefix(p.title(), state) {
			since = time.Time{}
			return false
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) > lasting
	})
}

func (a *album) recovered(p *tab) {
	a.t.Helper()
	a.until("all is well again", func() bool { return strings.HasPrefix(p.title(), "Healthy") })
}

// take writes a screenshot of a page, down to the end of an element.
func (a *album) take(p *tab, name string, width int64, end string) {
	a.t.Helper()
	a.view(p, width, 800)
	text := p.text(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().bottom", end))
	bottom, err := strconv.ParseFloat(text, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	a.view(p, width, int64(bottom)+margin)
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		a.t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		a.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(img)); err != nil {
		a.t.Fatal(err)
	}
	a.t.Logf("%s: %d bytes: %s", name, out.Len(), p.title())
	if err := os.WriteFile(filepath.Join(a.dir, name+".png"), out.Bytes(), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *album) view(p *tab, width, height int64) {
	a.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		a.t.Fatal(err)
	}
}

// fewColours returns an image in its 64 most frequent colours, which keep letters smooth and files
// small.
func fewColours(img image.Image) image.Image {
	b, n := img.Bounds(), map[color.Color]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			n[img.At(x, y)]++
		}
	}
	var palette color.Palette
	for c := range n {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return n[b] - n[a] })
	palette = palette[:min(len(palette), 64)]
	out, nearest := image.NewPaletted(b, palette), map[color.Color]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := img.At(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}

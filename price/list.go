package price

// List are the list prices that estimates assume, in dollars. Users must compare them with the
// pages of the clouds before they rely on an estimate.
type List struct {
	Region       string `json:"region"`
	GoogleRegion string `json:"google_region"`
	AsOf         string `json:"as_of"`         // of MillionUnits
	NotConfirmed bool   `json:"not_confirmed"` // by a dated page: all other prices

	MillionUnits    float64 `json:"million_read_units"`
	ExportedGB      float64 `json:"exported_gb"`
	StoredGB        float64 `json:"stored_gb_month"` // in S3
	StreamReads     float64 `json:"stream_reads_100000"`
	FreeStreamReads float64 `json:"free_stream_reads_a_month"`
	OutgoingGB      float64 `json:"outgoing_gb"`
	NodeHour        float64 `json:"bigtable_node_hour"`
	BigtableGB      float64 `json:"bigtable_gb_month"` // of SSD
	BigtableHDDGB   float64 `json:"bigtable_hdd_gb_month"`
}

// Assumed returns the prices. This is the one place where they are.
func Assumed() List {
	return List{
		// Standard table class.
		Region: "us-east-1", GoogleRegion: "us-central1", NotConfirmed: true,
		// Halved on 2024-11-01. https://aws.amazon.com/dynamodb/pricing/on-demand/ has the current
		// one; it was confirmed with
		// https://airbyte.com/data-engineering-resources/dynamodb-pricing of 2025-07-21.
		AsOf: "2024-11-01", MillionUnits: 0.125,
		// "Data export to Amazon S3", by the size of the table: look it up under
		// https://aws.amazon.com/dynamodb/pricing/on-demand/
		ExportedGB: 0.10,
		// S3 Standard, the first 50 TB, for a month: https://aws.amazon.com/s3/pricing/
		StoredGB: 0.023,
		// "DynamoDB Streams", for 100,000 read request units, each a GetRecords call; the first 2.5
		// million of a month are free for an account:
		// https://aws.amazon.com/dynamodb/pricing/on-demand/
		StreamReads: 0.02, FreeStreamReads: 2_500_000,
		// Data transfer out to the internet, the first 10 TB:
		// https://aws.amazon.com/ec2/pricing/on-demand/
		OutgoingGB: 0.09,
		// A provisioned node of the Enterprise edition, SSD and HDD storage:
		// https://cloud.google.com/bigtable/pricing. The prices of Enterprise Plus and of the
		// infrequent access tier are not built in.
		NodeHour: 0.65, BigtableGB: 0.17, BigtableHDDGB: 0.026,
	}
}

# A session with the usual command lines; the environment names the sandbox.
aws dynamodb create-table --table-name Shell --attribute-definitions AttributeName=pk,AttributeType=S \
  --key-schema AttributeName=pk,KeyType=HASH --billing-mode PAY_PER_REQUEST \
  --stream-specification StreamEnabled=true,StreamViewType=NEW_IMAGE >/dev/null
aws dynamodb put-item --table-name Shell --item '{"pk":{"S":"hat"},"price":{"N":"1"}}'
arn=$(aws dynamodbstreams list-streams --table-name Shell --query 'Streams[0].StreamArn' --output text)
shard=$(aws dynamodbstreams describe-stream --stream-arn "$arn" --query 'StreamDescription.Shards[0].ShardId' --output text)
iterator=$(aws dynamodbstreams get-shard-iterator --stream-arn "$arn" --shard-id "$shard" --shard-iterator-type TRIM_HORIZON --output text)
aws dynamodbstreams get-records --shard-iterator "$iterator" --query 'Records[0].[eventName,dynamodb.NewImage.price.N]' --output text | tr '\t' ' '

cbt="cbt -project local -instance local"
$cbt createtable orders families=d:maxversions=1 2>/dev/null
$cbt set orders row d:a=kept@1000 2>/dev/null
curl -sf "$AWS_ENDPOINT_URL/_sandbox/bigtable_outage" -d '{"for":"0s"}' >/dev/null
timeout 2 $cbt lookup orders row >/dev/null 2>&1 || echo UNAVAILABLE
curl -sf "$AWS_ENDPOINT_URL/_sandbox/bigtable_recover" -d '{}' >/dev/null
$cbt lookup orders row 2>/dev/null | grep -o kept

# What the replicator may do in AWS. The statements are those that `replicator check` prints: a test compares them.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  arn       = "arn:${local.partition}:dynamodb:${var.aws_region}:${local.account}:table/"

  all_tables   = concat(var.tables, var.archived_tables)
  asked_tables = var.exports == null ? [] : var.exports.ask ? var.exported_tables : []

  exports = [for e in var.exports[*] : {
    bucket  = "arn:${local.partition}:s3:::${e.bucket}"
    objects = "arn:${local.partition}:s3:::${e.bucket}/${trim(e.prefix, "/") == "" ? "" : "${trim(e.prefix, "/")}/"}*"
    ask     = e.ask
  }]
  archives = [for a in var.archive[*] : {
    bucket  = "arn:${local.partition}:s3:::${a.bucket}"
    objects = "arn:${local.partition}:s3:::${a.bucket}/${trim(a.prefix, "/") == "" ? "" : "${trim(a.prefix, "/")}/"}*"
  }]

  policy = {
    Version = "2012-10-17"
    Statement = concat([for s in [
      {
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:Scan", "dynamodb:BatchGetItem"]
        Resource = [for t in var.tables : "${local.arn}${t}"]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
        Resource = [for t in var.archived_tables : "${local.arn}${t}"]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:ListTables"]
        Resource = [for t in ["*"] : t if var.list_tables]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:ListTagsOfResource"]
        Resource = [for t in var.tagged_tables : "${local.arn}${t}"]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"]
        Resource = [for t in local.all_tables : "${local.arn}${t}/stream/*"]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:ExportTableToPointInTime", "dynamodb:DescribeContinuousBackups"]
        Resource = [for t in local.asked_tables : "${local.arn}${t}"]
      },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeExport"]
        Resource = [for t in var.exported_tables : "${local.arn}${t}/export/*"]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"]
        Resource = [for e in local.exports : e.objects if e.ask]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [for e in local.exports : e.objects]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = [for e in local.exports : e.bucket]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject"]
        Resource = [for a in local.archives : a.objects]
      },
      {
        Effect   = "Allow"
        Action   = ["s3:ListBucket", "s3:GetLifecycleConfiguration"]
        Resource = [for a in local.archives : a.bucket]
      },
      ] : s if length(s.Resource) > 0],
      [for t, prefix in var.heartbeats : {
        Effect    = "Allow"
        Action    = ["dynamodb:PutItem"]
        Resource  = ["${local.arn}${t}"]
        Condition = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["${prefix}*"] } }
    }])
  }

  trust = {
    Version = "2012-10-17"
    Statement = concat(
      [for o in var.oidc[*] : {
        Effect    = "Allow"
        Action    = ["sts:AssumeRoleWithWebIdentity"]
        Principal = { Federated = o.provider_arn }
        Condition = { StringEquals = {
          "${o.issuer}:sub" = "system:serviceaccount:${o.namespace}:${o.service_account}"
          "${o.issuer}:aud" = "sts.amazonaws.com"
        } }
      }],
      [for services in [var.trusted_services] : {
        Effect    = "Allow"
        Action    = ["sts:AssumeRole", "sts:TagSession"]
        Principal = { Service = services }
      } if length(services) > 0],
    )
  }
}

resource "aws_iam_policy" "replicator" {
  name        = var.name
  description = "What the replicator reads in DynamoDB"
  policy      = jsonencode(local.policy)
}

resource "aws_iam_role" "replicator" {
  name               = var.name
  assume_role_policy = jsonencode(local.trust)
}

resource "aws_iam_role_policy_attachment" "replicator" {
  role       = aws_iam_role.replicator.name
  policy_arn = aws_iam_policy.replicator.arn
}

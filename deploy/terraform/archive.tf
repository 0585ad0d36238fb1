# The bucket of the archive. Nothing in it is overwritten or deleted by the replicator: retention is the lifecycle, and only
# of what is below tr_table=. The manifests beside it must stay.

locals {
  made_archive = var.archive == null ? {} : var.archive.make ? { archive = var.archive } : {}
}

resource "aws_s3_bucket" "archive" {
  for_each = local.made_archive
  bucket   = each.value.bucket

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_public_access_block" "archive" {
  for_each                = local.made_archive
  bucket                  = aws_s3_bucket.archive[each.key].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "archive" {
  for_each = local.made_archive
  bucket   = aws_s3_bucket.archive[each.key].id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "archive" {
  for_each = { for k, a in local.made_archive : k => a if a.transition_days != null || a.expire_days != null }
  bucket   = aws_s3_bucket.archive[each.key].id

  rule {
    id     = "events"
    status = "Enabled"

    filter {
      prefix = "${trim(each.value.prefix, "/") == "" ? "" : "${trim(each.value.prefix, "/")}/"}tr_table="
    }

    dynamic "transition" {
      for_each = each.value.transition_days[*]
      content {
        days          = transition.value
        storage_class = each.value.storage_class
      }
    }

    dynamic "expiration" {
      for_each = each.value.expire_days[*]
      content {
        days = expiration.value
      }
    }

    # In a bucket with versions, what expires is kept as an old version.
    dynamic "noncurrent_version_expiration" {
      for_each = each.value.expire_days[*]
      content {
        noncurrent_days = 30
      }
    }
  }
}

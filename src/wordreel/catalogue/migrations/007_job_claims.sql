-- Several servers may share one library: each job is claimed by the one that runs it, and the claim is renewed
-- while it runs. A claim that is not renewed has lost its server, and the job goes to another.
ALTER TABLE jobs ADD COLUMN claimed_by TEXT;
ALTER TABLE jobs ADD COLUMN renewed_at REAL;
ALTER TABLE jobs ADD COLUMN cancel_requested INTEGER NOT NULL DEFAULT 0;

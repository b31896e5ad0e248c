BEGIN TRANSACTION;
CREATE TABLE agent_repos (
	agent VARCHAR(64) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	PRIMARY KEY (agent, repo),
	FOREIGN KEY(agent) REFERENCES agents (name) ON DELETE CASCADE,
	FOREIGN KEY(repo) REFERENCES repos (name) ON DELETE CASCADE
);
INSERT INTO "agent_repos" VALUES('scout','acme/shop');
CREATE TABLE agent_sessions (
	runtime VARCHAR(32) NOT NULL,
	session VARCHAR(200) NOT NULL,
	turn VARCHAR(120) NOT NULL,
	input_before BIGINT NOT NULL,
	output_before BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	PRIMARY KEY (runtime, session)
);
CREATE TABLE agents (
	name VARCHAR(64) NOT NULL,
	runtime VARCHAR(32) NOT NULL,
	command JSON NOT NULL,
	model VARCHAR(200),
	effort VARCHAR(64),
	template TEXT,
	role TEXT,
	capabilities JSON NOT NULL,
	autonomy_policy VARCHAR(32) NOT NULL,
	session VARCHAR(16) DEFAULT 'fresh' NOT NULL,
	added_at DOUBLE NOT NULL, require JSON DEFAULT '[]' NOT NULL, prefer JSON DEFAULT '[]' NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "agents" VALUES('scout','claude','[]',NULL,NULL,NULL,NULL,'["ask"]','read-only','fresh',1.79565042236470031743e+09,'[]','[]');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0012');
CREATE TABLE artifact_parts (
	digest VARCHAR(64) NOT NULL,
	number INTEGER NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (digest, number),
	FOREIGN KEY(digest) REFERENCES artifacts (digest) ON DELETE CASCADE
);
CREATE TABLE artifacts (
	digest VARCHAR(64) NOT NULL,
	size BIGINT NOT NULL,
	body BLOB,
	used_at DOUBLE NOT NULL,
	PRIMARY KEY (digest)
);
CREATE TABLE "attempts" (
	job_id VARCHAR(80) NOT NULL,
	attempt INTEGER NOT NULL,
	host VARCHAR(200) NOT NULL,
	run_dir TEXT NOT NULL,
	worktree TEXT,
	branch TEXT,
	base_sha VARCHAR(64),
	started_at DOUBLE NOT NULL,
	ended_at DOUBLE,
	outcome JSON,
	payload JSON,
	diagnostics JSON, given JSON,
	PRIMARY KEY (job_id, attempt)
);
INSERT INTO "attempts" VALUES('job-0123456789ab',1,'here','/home/runs/1',NULL,NULL,NULL,5.0,9.0,'{"job_id": "job-0123456789ab", "attempt": 1, "state": "succeeded"}',NULL,NULL,NULL);
INSERT INTO "attempts" VALUES('job-0123456789ab.1',1,'here','/home/runs/2',NULL,NULL,NULL,5.0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE checkouts (
	repo VARCHAR(200) NOT NULL,
	host VARCHAR(200) NOT NULL,
	path TEXT NOT NULL,
	added_at DOUBLE NOT NULL,
	PRIMARY KEY (repo, host),
	FOREIGN KEY(repo) REFERENCES repos (name) ON DELETE CASCADE
);
INSERT INTO "checkouts" VALUES('acme/shop','here','/srv/checkouts/shop',1.79565042171932196619e+09);
CREATE TABLE claims (
	job_id VARCHAR(80) NOT NULL,
	attempt INTEGER NOT NULL,
	offer INTEGER NOT NULL,
	begun_at DOUBLE, stop_at DOUBLE,
	PRIMARY KEY (job_id, attempt)
);
CREATE TABLE cluster (
	id INTEGER NOT NULL,
	"key" VARCHAR(64) NOT NULL,
	namespace VARCHAR(255) NOT NULL,
	oldest_release VARCHAR(64) NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT cluster_has_one_row CHECK (id = 1)
);
CREATE TABLE deferrals (
	job_id VARCHAR(80) NOT NULL,
	attempt INTEGER NOT NULL,
	number INTEGER NOT NULL,
	runtime VARCHAR(32) NOT NULL,
	kind VARCHAR(20) NOT NULL,
	message TEXT NOT NULL,
	at DOUBLE NOT NULL,
	until DOUBLE NOT NULL,
	input_tokens INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	PRIMARY KEY (job_id, attempt, number)
);
CREATE TABLE deliveries (
	notification_id VARCHAR(120) NOT NULL,
	channel VARCHAR(20) NOT NULL,
	attempts INTEGER NOT NULL,
	delivered_at DOUBLE,
	error TEXT NOT NULL,
	PRIMARY KEY (notification_id, channel),
	FOREIGN KEY(notification_id) REFERENCES notifications (notification_id) ON DELETE CASCADE
);
CREATE TABLE events (
	event_id VARCHAR(100) NOT NULL,
	seq INTEGER NOT NULL,
	job_id VARCHAR(80) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	kind VARCHAR(64) NOT NULL,
	at DOUBLE NOT NULL,
	message TEXT NOT NULL,
	data JSON NOT NULL,
	PRIMARY KEY (event_id)
);
INSERT INTO "events" VALUES('job-0123456789ab-e1',1,'job-0123456789ab','job-0123456789ab','delegation_loop_warning',1.0,'message 1','{}');
CREATE TABLE github_account (
	name VARCHAR(20) NOT NULL,
	login VARCHAR(200) NOT NULL,
	kind VARCHAR(12) NOT NULL,
	seen_at DOUBLE NOT NULL,
	quota INTEGER,
	remaining INTEGER,
	reset_at DOUBLE,
	blocked_until DOUBLE,
	failing_since DOUBLE,
	failures INTEGER NOT NULL,
	problem TEXT NOT NULL,
	wrote_at DOUBLE NOT NULL,
	checks_refused BOOLEAN NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE github_comments (
	comment_id BIGINT NOT NULL,
	github VARCHAR(200) NOT NULL,
	number INTEGER NOT NULL,
	author VARCHAR(200) NOT NULL,
	created_at DOUBLE NOT NULL,
	state VARCHAR(12) NOT NULL,
	outcome TEXT NOT NULL,
	job_id VARCHAR(80),
	at DOUBLE NOT NULL,
	acted_at DOUBLE,
	PRIMARY KEY (comment_id)
);
CREATE TABLE github_deliveries (
	delivery_id VARCHAR(100) NOT NULL,
	event VARCHAR(60) NOT NULL,
	at DOUBLE NOT NULL,
	PRIMARY KEY (delivery_id)
);
CREATE TABLE github_facts (
	fact_id VARCHAR(160) NOT NULL,
	kind VARCHAR(20) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	github VARCHAR(200) NOT NULL,
	number INTEGER NOT NULL,
	subject VARCHAR(120) NOT NULL,
	text TEXT NOT NULL,
	state VARCHAR(12) NOT NULL,
	host VARCHAR(200) NOT NULL,
	at DOUBLE NOT NULL,
	next_at DOUBLE NOT NULL,
	attempts INTEGER NOT NULL,
	error TEXT NOT NULL,
	done_at DOUBLE,
	github_id VARCHAR(40),
	url TEXT NOT NULL,
	digest VARCHAR(64) NOT NULL,
	revision INTEGER NOT NULL,
	PRIMARY KEY (fact_id)
);
CREATE TABLE github_pages (
	url VARCHAR(600) NOT NULL,
	etag TEXT,
	last_modified TEXT,
	data JSON NOT NULL,
	more TEXT,
	at DOUBLE NOT NULL,
	PRIMARY KEY (url)
);
CREATE TABLE github_published (
	repo VARCHAR(200) NOT NULL,
	since DOUBLE NOT NULL,
	PRIMARY KEY (repo)
);
CREATE TABLE github_repos (
	github VARCHAR(200) NOT NULL,
	since DOUBLE NOT NULL,
	polled_at DOUBLE NOT NULL,
	next_at DOUBLE NOT NULL,
	wanted_at DOUBLE NOT NULL,
	default_branch VARCHAR(255) NOT NULL,
	error TEXT NOT NULL,
	PRIMARY KEY (github)
);
CREATE TABLE github_requests (
	hour INTEGER NOT NULL,
	github VARCHAR(200) NOT NULL,
	counted INTEGER NOT NULL,
	free INTEGER NOT NULL,
	written INTEGER NOT NULL,
	PRIMARY KEY (hour, github)
);
CREATE TABLE github_threads (
	root_job_id VARCHAR(80) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	github VARCHAR(200) NOT NULL,
	number INTEGER NOT NULL,
	kind VARCHAR(20) NOT NULL,
	bound_at DOUBLE NOT NULL,
	told_seq INTEGER NOT NULL,
	over BOOLEAN NOT NULL,
	head_sha VARCHAR(64),
	closed BOOLEAN DEFAULT 0 NOT NULL,
	PRIMARY KEY (root_job_id)
);
CREATE TABLE hosts (
	name VARCHAR(200) NOT NULL,
	version VARCHAR(64) NOT NULL,
	slots INTEGER NOT NULL,
	started_at DOUBLE NOT NULL,
	seen_at DOUBLE NOT NULL,
	stopped_at DOUBLE, held TEXT DEFAULT '' NOT NULL, machine VARCHAR(64) DEFAULT '' NOT NULL, "key" VARCHAR(64) DEFAULT '' NOT NULL, labels JSON DEFAULT '[]' NOT NULL, address TEXT DEFAULT '' NOT NULL, taken INTEGER DEFAULT '0' NOT NULL, draining_at DOUBLE, lost_at DOUBLE, keys JSON DEFAULT '[]' NOT NULL, placed INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "hosts" VALUES('here','0.2.0',4,1.0,1.79565042250382137303e+09,NULL,'','','','[]','',0,NULL,NULL,'[]',0);
CREATE TABLE idempotency (
	"key" VARCHAR(200) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	subject VARCHAR(100) NOT NULL,
	reserved_at DOUBLE NOT NULL,
	answer JSON,
	PRIMARY KEY ("key")
);
INSERT INTO "idempotency" VALUES('72a90ea3da8b5dd01bde2f27314e02e217f935182ea573a7ff9b5f5060ef996b','d','first',1795650422.48872,NULL);
CREATE TABLE invites (
	digest VARCHAR(64) NOT NULL,
	host VARCHAR(200) NOT NULL,
	made_at DOUBLE NOT NULL,
	expires_at DOUBLE NOT NULL,
	used_at DOUBLE,
	used_by VARCHAR(200) DEFAULT '' NOT NULL,
	PRIMARY KEY (digest)
);
CREATE TABLE jobs (
	job_id VARCHAR(80) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	parent_job_id VARCHAR(80),
	delegation_id VARCHAR(64),
	delegation_depth INTEGER NOT NULL,
	task_id VARCHAR(80) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	agent VARCHAR(200) NOT NULL,
	ephemeral BOOLEAN NOT NULL,
	runtime VARCHAR(32) NOT NULL,
	action VARCHAR(20) NOT NULL,
	continuation VARCHAR(20) NOT NULL,
	state VARCHAR(20) NOT NULL,
	revision INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	reason TEXT NOT NULL,
	next TEXT NOT NULL,
	waits_for VARCHAR(20) NOT NULL,
	decision VARCHAR(20),
	summary TEXT NOT NULL,
	model VARCHAR(200),
	effort VARCHAR(64),
	phase VARCHAR(200),
	branch TEXT,
	head_sha VARCHAR(64),
	pull_request INTEGER,
	result_digest VARCHAR(64),
	input_tokens INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	cost_usd DOUBLE NOT NULL,
	price_assumed BOOLEAN NOT NULL,
	queued_at DOUBLE NOT NULL,
	started_at DOUBLE,
	ended_at DOUBLE,
	preflight_failed TEXT, issue INTEGER,
	PRIMARY KEY (job_id)
);
INSERT INTO "jobs" VALUES('job-0123456789ab','job-0123456789ab',NULL,NULL,0,'task-0123456789ab','acme/shop','scout',0,'shell','ask','none','succeeded',1,1,'','','',NULL,'',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0.0,0,1.79565042252161765094e+09,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('job-0123456789ab.1','job-0123456789ab','job-0123456789ab','leg',1,'task-0123456789ab','acme/shop','scout',0,'shell','ask','none','running',1,1,'','','',NULL,'',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0.0,0,1.79565042252165937416e+09,NULL,NULL,NULL,NULL);
CREATE TABLE kept_secrets (
	name VARCHAR(20) NOT NULL,
	host VARCHAR(200) NOT NULL,
	path TEXT NOT NULL,
	PRIMARY KEY (name, host)
);
CREATE TABLE memory (
	number INTEGER NOT NULL,
	digest VARCHAR(64) NOT NULL,
	agent VARCHAR(200),
	repo VARCHAR(200),
	"key" TEXT NOT NULL,
	content TEXT NOT NULL,
	key_words TEXT NOT NULL,
	content_words TEXT NOT NULL,
	state VARCHAR(20) NOT NULL,
	author VARCHAR(200) NOT NULL,
	job_id VARCHAR(80),
	created_at DOUBLE NOT NULL,
	decided_by VARCHAR(200),
	decided_at DOUBLE,
	PRIMARY KEY (number),
	UNIQUE (digest)
);
INSERT INTO "memory" VALUES(1,'e11d388b2ee6b42fdc012b5b1f07200dcaad7c01ae289aeefe37ad3483e0730c',NULL,'acme/shop','limits','orders end at 100','limits','orders end at 100','confirmed','ann',NULL,1.79565042240007710456e+09,'ann',1.7956504224866321087e+09);

CREATE TABLE moves (
	job_id VARCHAR(80) NOT NULL,
	attempt INTEGER NOT NULL,
	host VARCHAR(200) NOT NULL,
	reason TEXT NOT NULL,
	at DOUBLE NOT NULL,
	kept VARCHAR(400),
	PRIMARY KEY (job_id, attempt)
);
CREATE TABLE notifications (
	notification_id VARCHAR(120) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	job_id VARCHAR(80) NOT NULL,
	kind VARCHAR(64) NOT NULL,
	message TEXT NOT NULL,
	at DOUBLE NOT NULL,
	PRIMARY KEY (notification_id)
);
CREATE TABLE pipeline_runs (
	run_id VARCHAR(80) NOT NULL,
	pipeline VARCHAR(64) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	"trigger" VARCHAR(20) NOT NULL,
	definition TEXT NOT NULL,
	payload JSON NOT NULL,
	state VARCHAR(20) NOT NULL,
	reason TEXT NOT NULL,
	halt_stage VARCHAR(64),
	revision INTEGER NOT NULL,
	started_at DOUBLE NOT NULL,
	finished_at DOUBLE,
	tokens INTEGER NOT NULL,
	cost_usd DOUBLE NOT NULL,
	price_assumed BOOLEAN DEFAULT 0 NOT NULL, pull_request INTEGER, issue INTEGER,
	PRIMARY KEY (run_id)
);
CREATE TABLE pipeline_stages (
	run_id VARCHAR(80) NOT NULL,
	stage_id VARCHAR(64) NOT NULL,
	number INTEGER NOT NULL,
	kind VARCHAR(8) NOT NULL,
	needs JSON NOT NULL,
	state VARCHAR(20) NOT NULL,
	reason TEXT NOT NULL,
	revision INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	job_id VARCHAR(80),
	decision VARCHAR(20),
	summary TEXT NOT NULL,
	started_at DOUBLE,
	finished_at DOUBLE,
	tokens INTEGER NOT NULL,
	PRIMARY KEY (run_id, stage_id),
	FOREIGN KEY(run_id) REFERENCES pipeline_runs (run_id) ON DELETE CASCADE
);
CREATE TABLE pipelines (
	name VARCHAR(64) NOT NULL,
	repo VARCHAR(200),
	enabled BOOLEAN NOT NULL,
	scheduled BOOLEAN NOT NULL,
	format VARCHAR(8) NOT NULL,
	definition TEXT NOT NULL,
	digest VARCHAR(64) NOT NULL,
	added_at DOUBLE NOT NULL,
	updated_at DOUBLE NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "pipelines" VALUES('nightly','acme/shop',1,0,'yaml','name: nightly
repo: acme/shop
stages:
  - id: build
    kind: shell
    command: ["true"]
','864cb4915e0124e5a34692d2f7ae16a3ede233042320cc3a956d9449d756e841',1.79565042238354372981e+09,1.79565042238354372981e+09);
CREATE TABLE placements (
	job_id VARCHAR(80) NOT NULL,
	attempt INTEGER NOT NULL,
	host VARCHAR(200) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	at DOUBLE NOT NULL,
	PRIMARY KEY (job_id, attempt)
);
CREATE TABLE repos (
	name VARCHAR(200) NOT NULL,
	added_at DOUBLE NOT NULL, github VARCHAR(200) DEFAULT '' NOT NULL, remote TEXT DEFAULT '' NOT NULL, default_branch TEXT DEFAULT '' NOT NULL, refs VARCHAR(40) DEFAULT '' NOT NULL, require JSON DEFAULT '[]' NOT NULL, prefer JSON DEFAULT '[]' NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "repos" VALUES('acme/shop',1.79565042171932196619e+09,'acme/shop','','','','[]','[]');
CREATE TABLE review_notes (
	review_id VARCHAR(80) NOT NULL,
	seq INTEGER NOT NULL,
	author VARCHAR(200) NOT NULL,
	text TEXT NOT NULL,
	at DOUBLE NOT NULL,
	PRIMARY KEY (review_id, seq),
	FOREIGN KEY(review_id) REFERENCES reviews (review_id)
);
CREATE TABLE reviews (
	review_id VARCHAR(80) NOT NULL,
	repo VARCHAR(200),
	pull_request INTEGER NOT NULL,
	head_sha VARCHAR(64) NOT NULL,
	workflow VARCHAR(200) NOT NULL,
	opened_at DOUBLE NOT NULL,
	closed_at DOUBLE,
	verdict TEXT,
	PRIMARY KEY (review_id)
);
CREATE TABLE rounds (
	round_id VARCHAR(100) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	coordinator_id VARCHAR(80) NOT NULL,
	job_id VARCHAR(80) NOT NULL,
	task_id VARCHAR(80) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	number INTEGER NOT NULL,
	kind VARCHAR(20) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	revision INTEGER NOT NULL,
	questions JSON NOT NULL,
	failing JSON NOT NULL,
	verbs JSON NOT NULL,
	commands JSON NOT NULL,
	opened_at DOUBLE NOT NULL,
	expires_at DOUBLE NOT NULL,
	"end" VARCHAR(20),
	closed_at DOUBLE,
	closed TEXT NOT NULL,
	said TEXT NOT NULL,
	PRIMARY KEY (round_id)
);
INSERT INTO "rounds" VALUES('job-0123456789ab-r1','job-0123456789ab','job-0123456789ab','job-0123456789ab','task-0123456789ab','acme/shop',1,'ask','d',1,'[{"id": "color", "prompt": "which?", "choices": [], "job_id": "job-0123456789ab", "leg": "", "answer": null}]','[]','["answer", "extend"]','["service resume job-0123456789ab answer"]',1.0,2.0,NULL,NULL,'','');
CREATE TABLE seal_keys (
	fingerprint VARCHAR(64) NOT NULL,
	wrapped VARCHAR(200) NOT NULL,
	under VARCHAR(64) NOT NULL,
	offered_at DOUBLE NOT NULL,
	seals_since DOUBLE,
	left_at DOUBLE,
	removed_at DOUBLE,
	PRIMARY KEY (fingerprint)
);
CREATE TABLE tasks (
	task_id VARCHAR(80) NOT NULL,
	root_job_id VARCHAR(80) NOT NULL,
	repo VARCHAR(200) NOT NULL,
	title TEXT NOT NULL,
	state VARCHAR(20) NOT NULL,
	revision INTEGER NOT NULL,
	reason TEXT NOT NULL,
	next TEXT NOT NULL,
	waits_for VARCHAR(20) NOT NULL,
	to_retry VARCHAR(80) NOT NULL,
	opened_at DOUBLE NOT NULL,
	ended_at DOUBLE,
	paused_seconds DOUBLE DEFAULT '0' NOT NULL,
	paused_since DOUBLE,
	PRIMARY KEY (task_id),
	UNIQUE (root_job_id)
);
INSERT INTO "tasks" VALUES('task-0123456789ab','job-0123456789ab','acme/shop','look','awaiting_human',1,'','','','',1.0,NULL,0.0,NULL);
CREATE TABLE tokens (
	name VARCHAR(80) NOT NULL,
	scope VARCHAR(20) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	made_at DOUBLE NOT NULL,
	PRIMARY KEY (name),
	UNIQUE (digest)
);
CREATE TABLE trees (
	root_job_id VARCHAR(80) NOT NULL,
	host VARCHAR(200) NOT NULL,
	start JSON NOT NULL,
	revision INTEGER NOT NULL,
	state JSON,
	PRIMARY KEY (root_job_id)
);
CREATE TABLE writers (
	root_job_id VARCHAR(80) NOT NULL,
	run_id VARCHAR(64) NOT NULL,
	first INTEGER NOT NULL,
	anew BOOLEAN NOT NULL,
	shift INTEGER NOT NULL,
	event_shift INTEGER,
	former JSON NOT NULL,
	PRIMARY KEY (root_job_id)
);
CREATE INDEX tasks_by_state ON tasks (state, opened_at);
CREATE INDEX events_by_kind ON events (kind, at);
CREATE UNIQUE INDEX events_by_root ON events (root_job_id, seq);
CREATE INDEX jobs_by_root ON jobs (root_job_id);
CREATE INDEX jobs_by_preflight ON jobs (queued_at) WHERE preflight_failed IS NOT NULL;
CREATE INDEX jobs_by_spender ON jobs (agent, repo, model, ended_at, started_at, queued_at, input_tokens, output_tokens, cost_usd, price_assumed);
CREATE INDEX jobs_by_state ON jobs (state, queued_at);
CREATE INDEX jobs_by_time ON jobs (queued_at, job_id, root_job_id, agent, delegation_id);
CREATE INDEX rounds_by_root ON rounds (root_job_id);
CREATE INDEX rounds_open ON rounds (closed_at, opened_at);
CREATE INDEX deliveries_open ON deliveries (notification_id) WHERE delivered_at IS NULL;
CREATE INDEX reviews_by_pull_request ON reviews (pull_request);
CREATE INDEX pipeline_runs_by_pipeline ON pipeline_runs (pipeline, started_at);
CREATE INDEX pipeline_runs_by_time ON pipeline_runs (started_at, run_id);
CREATE INDEX idempotency_by_time ON idempotency (reserved_at);
CREATE INDEX memory_by_state ON memory (state, number);
CREATE VIEW memory_confirmed AS SELECT number, key_words, content_words FROM memory WHERE state = 'confirmed';
CREATE TRIGGER memory_inserted AFTER INSERT ON memory WHEN new.state = 'confirmed' BEGIN
        INSERT INTO memory_search (rowid, key_words, content_words)
        VALUES (new.number, new.key_words, new.content_words);
    END;
CREATE TRIGGER memory_updated AFTER UPDATE ON memory BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        SELECT 'delete', old.number, old.key_words, old.content_words WHERE old.state = 'confirmed';
        INSERT INTO memory_search (rowid, key_words, content_words)
        SELECT new.number, new.key_words, new.content_words WHERE new.state = 'confirmed';
    END;
CREATE TRIGGER memory_deleted AFTER DELETE ON memory WHEN old.state = 'confirmed' BEGIN
        INSERT INTO memory_search (memory_search, rowid, key_words, content_words)
        VALUES ('delete', old.number, old.key_words, old.content_words);
    END;
CREATE INDEX jobs_by_pull_request ON jobs (pull_request, queued_at) WHERE pull_request IS NOT NULL;
CREATE INDEX jobs_by_issue ON jobs (issue, queued_at) WHERE issue IS NOT NULL;
CREATE INDEX github_threads_by_number ON github_threads (github, number);
CREATE INDEX github_threads_open ON github_threads (root_job_id) WHERE NOT over;
CREATE INDEX github_facts_open ON github_facts (next_at) WHERE state = 'open';
CREATE INDEX github_facts_failed ON github_facts (github, number) WHERE state = 'failed';
CREATE INDEX github_facts_to_push ON github_facts (next_at) WHERE state = 'push';
CREATE INDEX github_facts_published ON github_facts (root_job_id) WHERE kind = 'publish';
CREATE INDEX github_facts_by_root ON github_facts (root_job_id);
CREATE INDEX github_comments_by_thread ON github_comments (github, number, at);
CREATE INDEX github_comments_open ON github_comments (at) WHERE state = 'taken';
CREATE INDEX github_deliveries_by_time ON github_deliveries (at);
CREATE INDEX moves_by_host ON moves (host, kept);
CREATE INDEX ix_artifacts_used_at ON artifacts (used_at);
CREATE INDEX placements_by_host ON placements (host, at);
CREATE INDEX placements_by_repo ON placements (repo, host);
CREATE VIRTUAL TABLE memory_search USING fts5(
        key_words, content_words, content='memory_confirmed', content_rowid='number', tokenize='porter ascii'
    );
INSERT INTO memory_search (memory_search) VALUES ('rebuild');
COMMIT;

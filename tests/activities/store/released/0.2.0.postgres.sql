CREATE TEXT SEARCH DICTIONARY public.memory_stem (
    TEMPLATE = pg_catalog.snowball,
    language = 'english' );
CREATE TEXT SEARCH CONFIGURATION public.memory_search (
    PARSER = pg_catalog."default" );
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR asciiword WITH public.memory_stem;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR word WITH public.memory_stem;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR numword WITH public.memory_stem;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR email WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR url WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR host WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR sfloat WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR version WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR hword_numpart WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR hword_part WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR hword_asciipart WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR numhword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR asciihword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR hword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR url_path WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR file WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR "float" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR "int" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.memory_search
    ADD MAPPING FOR uint WITH simple;
CREATE TABLE public.agent_repos (
    agent character varying(64) NOT NULL,
    repo character varying(200) NOT NULL
);
CREATE TABLE public.agent_sessions (
    runtime character varying(32) NOT NULL,
    session character varying(200) NOT NULL,
    turn character varying(120) NOT NULL,
    input_before bigint NOT NULL,
    output_before bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL
);
CREATE TABLE public.agents (
    name character varying(64) NOT NULL,
    runtime character varying(32) NOT NULL,
    command json NOT NULL,
    model character varying(200),
    effort character varying(64),
    template text,
    role text,
    capabilities json NOT NULL,
    autonomy_policy character varying(32) NOT NULL,
    session character varying(16) DEFAULT 'fresh'::character varying NOT NULL,
    added_at double precision NOT NULL,
    require json DEFAULT '[]'::json NOT NULL,
    prefer json DEFAULT '[]'::json NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.artifact_parts (
    digest character varying(64) NOT NULL,
    number integer NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE public.artifacts (
    digest character varying(64) NOT NULL,
    size bigint NOT NULL,
    body bytea,
    used_at double precision NOT NULL
);
CREATE TABLE public.attempts (
    job_id character varying(80) NOT NULL,
    attempt integer NOT NULL,
    host character varying(200) NOT NULL,
    run_dir text NOT NULL,
    worktree text,
    branch text,
    base_sha character varying(64),
    started_at double precision NOT NULL,
    ended_at double precision,
    outcome json,
    payload json,
    diagnostics json,
    given json
);
CREATE TABLE public.checkouts (
    repo character varying(200) NOT NULL,
    host character varying(200) NOT NULL,
    path text NOT NULL,
    added_at double precision NOT NULL
);
CREATE TABLE public.claims (
    job_id character varying(80) NOT NULL,
    attempt integer NOT NULL,
    offer integer NOT NULL,
    begun_at double precision,
    stop_at double precision
);
CREATE TABLE public.cluster (
    id integer NOT NULL,
    key character varying(64) NOT NULL,
    namespace character varying(255) NOT NULL,
    oldest_release character varying(64) NOT NULL,
    CONSTRAINT cluster_has_one_row CHECK ((id = 1))
);
CREATE TABLE public.deferrals (
    job_id character varying(80) NOT NULL,
    attempt integer NOT NULL,
    number integer NOT NULL,
    runtime character varying(32) NOT NULL,
    kind character varying(20) NOT NULL,
    message text NOT NULL,
    at double precision NOT NULL,
    until double precision NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL
);
CREATE TABLE public.deliveries (
    notification_id character varying(120) NOT NULL,
    channel character varying(20) NOT NULL,
    attempts integer NOT NULL,
    delivered_at double precision,
    error text NOT NULL
);
CREATE TABLE public.events (
    event_id character varying(100) NOT NULL,
    seq integer NOT NULL,
    job_id character varying(80) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    kind character varying(64) NOT NULL,
    at double precision NOT NULL,
    message text NOT NULL,
    data json NOT NULL
);
CREATE TABLE public.github_account (
    name character varying(20) NOT NULL,
    login character varying(200) NOT NULL,
    kind character varying(12) NOT NULL,
    seen_at double precision NOT NULL,
    quota integer,
    remaining integer,
    reset_at double precision,
    blocked_until double precision,
    failing_since double precision,
    failures integer NOT NULL,
    problem text NOT NULL,
    wrote_at double precision NOT NULL,
    checks_refused boolean NOT NULL
);
CREATE TABLE public.github_comments (
    comment_id bigint NOT NULL,
    github character varying(200) NOT NULL,
    number integer NOT NULL,
    author character varying(200) NOT NULL,
    created_at double precision NOT NULL,
    state character varying(12) NOT NULL,
    outcome text NOT NULL,
    job_id character varying(80),
    at double precision NOT NULL,
    acted_at double precision
);
CREATE TABLE public.github_deliveries (
    delivery_id character varying(100) NOT NULL,
    event character varying(60) NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE public.github_facts (
    fact_id character varying(160) NOT NULL,
    kind character varying(20) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    github character varying(200) NOT NULL,
    number integer NOT NULL,
    subject character varying(120) NOT NULL,
    text text NOT NULL,
    state character varying(12) NOT NULL,
    host character varying(200) NOT NULL,
    at double precision NOT NULL,
    next_at double precision NOT NULL,
    attempts integer NOT NULL,
    error text NOT NULL,
    done_at double precision,
    github_id character varying(40),
    url text NOT NULL,
    digest character varying(64) NOT NULL,
    revision integer NOT NULL
);
CREATE TABLE public.github_pages (
    url character varying(600) NOT NULL,
    etag text,
    last_modified text,
    data json NOT NULL,
    more text,
    at double precision NOT NULL
);
CREATE TABLE public.github_published (
    repo character varying(200) NOT NULL,
    since double precision NOT NULL
);
CREATE TABLE public.github_repos (
    github character varying(200) NOT NULL,
    since double precision NOT NULL,
    polled_at double precision NOT NULL,
    next_at double precision NOT NULL,
    wanted_at double precision NOT NULL,
    default_branch character varying(255) NOT NULL,
    error text NOT NULL
);
CREATE TABLE public.github_requests (
    hour integer NOT NULL,
    github character varying(200) NOT NULL,
    counted integer NOT NULL,
    free integer NOT NULL,
    written integer NOT NULL
);
CREATE TABLE public.github_threads (
    root_job_id character varying(80) NOT NULL,
    repo character varying(200) NOT NULL,
    github character varying(200) NOT NULL,
    number integer NOT NULL,
    kind character varying(20) NOT NULL,
    bound_at double precision NOT NULL,
    told_seq integer NOT NULL,
    over boolean NOT NULL,
    head_sha character varying(64),
    closed boolean DEFAULT false NOT NULL
);
CREATE TABLE public.hosts (
    name character varying(200) NOT NULL,
    version character varying(64) NOT NULL,
    slots integer NOT NULL,
    started_at double precision NOT NULL,
    seen_at double precision NOT NULL,
    stopped_at double precision,
    held text DEFAULT ''::text NOT NULL,
    machine character varying(64) DEFAULT ''::character varying NOT NULL,
    key character varying(64) DEFAULT ''::character varying NOT NULL,
    labels json DEFAULT '[]'::json NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    taken integer DEFAULT 0 NOT NULL,
    draining_at double precision,
    lost_at double precision,
    keys json DEFAULT '[]'::json NOT NULL,
    placed integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.idempotency (
    key character varying(200) NOT NULL,
    digest character varying(64) NOT NULL,
    subject character varying(100) NOT NULL,
    reserved_at double precision NOT NULL,
    answer json
);
CREATE TABLE public.invites (
    digest character varying(64) NOT NULL,
    host character varying(200) NOT NULL,
    made_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    used_at double precision,
    used_by character varying(200) DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.jobs (
    job_id character varying(80) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    parent_job_id character varying(80),
    delegation_id character varying(64),
    delegation_depth integer NOT NULL,
    task_id character varying(80) NOT NULL,
    repo character varying(200) NOT NULL,
    agent character varying(200) NOT NULL,
    ephemeral boolean NOT NULL,
    runtime character varying(32) NOT NULL,
    action character varying(20) NOT NULL,
    continuation character varying(20) NOT NULL,
    state character varying(20) NOT NULL,
    revision integer NOT NULL,
    attempt integer NOT NULL,
    reason text NOT NULL,
    next text NOT NULL,
    waits_for character varying(20) NOT NULL,
    decision character varying(20),
    summary text NOT NULL,
    model character varying(200),
    effort character varying(64),
    phase character varying(200),
    branch text,
    head_sha character varying(64),
    pull_request integer,
    result_digest character varying(64),
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_usd double precision NOT NULL,
    price_assumed boolean NOT NULL,
    queued_at double precision NOT NULL,
    started_at double precision,
    ended_at double precision,
    preflight_failed text,
    issue integer
);
CREATE TABLE public.kept_secrets (
    name character varying(20) NOT NULL,
    host character varying(200) NOT NULL,
    path text NOT NULL
);
CREATE TABLE public.memory (
    number integer NOT NULL,
    digest character varying(64) NOT NULL,
    agent character varying(200),
    repo character varying(200),
    key text NOT NULL,
    content text NOT NULL,
    key_words text NOT NULL,
    content_words text NOT NULL,
    state character varying(20) NOT NULL,
    author character varying(200) NOT NULL,
    job_id character varying(80),
    created_at double precision NOT NULL,
    decided_by character varying(200),
    decided_at double precision,
    memory_search tsvector GENERATED ALWAYS AS ((setweight(to_tsvector('public.memory_search'::regconfig, key_words), 'A'::"char") || setweight(to_tsvector('public.memory_search'::regconfig, content_words), 'B'::"char"))) STORED
);
CREATE SEQUENCE public.memory_number_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.memory_number_seq OWNED BY public.memory.number;
CREATE TABLE public.moves (
    job_id character varying(80) NOT NULL,
    attempt integer NOT NULL,
    host character varying(200) NOT NULL,
    reason text NOT NULL,
    at double precision NOT NULL,
    kept character varying(400)
);
CREATE TABLE public.notifications (
    notification_id character varying(120) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    job_id character varying(80) NOT NULL,
    kind character varying(64) NOT NULL,
    message text NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE public.pipeline_runs (
    run_id character varying(80) NOT NULL,
    pipeline character varying(64) NOT NULL,
    repo character varying(200) NOT NULL,
    trigger character varying(20) NOT NULL,
    definition text NOT NULL,
    payload json NOT NULL,
    state character varying(20) NOT NULL,
    reason text NOT NULL,
    halt_stage character varying(64),
    revision integer NOT NULL,
    started_at double precision NOT NULL,
    finished_at double precision,
    tokens bigint NOT NULL,
    cost_usd double precision NOT NULL,
    price_assumed boolean DEFAULT false NOT NULL,
    pull_request integer,
    issue integer
);
CREATE TABLE public.pipeline_stages (
    run_id character varying(80) NOT NULL,
    stage_id character varying(64) NOT NULL,
    number integer NOT NULL,
    kind character varying(8) NOT NULL,
    needs json NOT NULL,
    state character varying(20) NOT NULL,
    reason text NOT NULL,
    revision integer NOT NULL,
    attempt integer NOT NULL,
    job_id character varying(80),
    decision character varying(20),
    summary text NOT NULL,
    started_at double precision,
    finished_at double precision,
    tokens bigint NOT NULL
);
CREATE TABLE public.pipelines (
    name character varying(64) NOT NULL,
    repo character varying(200),
    enabled boolean NOT NULL,
    scheduled boolean NOT NULL,
    format character varying(8) NOT NULL,
    definition text NOT NULL,
    digest character varying(64) NOT NULL,
    added_at double precision NOT NULL,
    updated_at double precision NOT NULL
);
CREATE TABLE public.placements (
    job_id character varying(80) NOT NULL,
    attempt integer NOT NULL,
    host character varying(200) NOT NULL,
    repo character varying(200) NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE public.repos (
    name character varying(200) NOT NULL,
    added_at double precision NOT NULL,
    github character varying(200) DEFAULT ''::character varying NOT NULL,
    remote text DEFAULT ''::text NOT NULL,
    default_branch text DEFAULT ''::text NOT NULL,
    refs character varying(40) DEFAULT ''::character varying NOT NULL,
    require json DEFAULT '[]'::json NOT NULL,
    prefer json DEFAULT '[]'::json NOT NULL
);
CREATE TABLE public.review_notes (
    review_id character varying(80) NOT NULL,
    seq integer NOT NULL,
    author character varying(200) NOT NULL,
    text text NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE public.reviews (
    review_id character varying(80) NOT NULL,
    repo character varying(200),
    pull_request integer NOT NULL,
    head_sha character varying(64) NOT NULL,
    workflow character varying(200) NOT NULL,
    opened_at double precision NOT NULL,
    closed_at double precision,
    verdict text
);
CREATE TABLE public.rounds (
    round_id character varying(100) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    coordinator_id character varying(80) NOT NULL,
    job_id character varying(80) NOT NULL,
    task_id character varying(80) NOT NULL,
    repo character varying(200) NOT NULL,
    number integer NOT NULL,
    kind character varying(20) NOT NULL,
    digest character varying(64) NOT NULL,
    revision integer NOT NULL,
    questions json NOT NULL,
    failing json NOT NULL,
    verbs json NOT NULL,
    commands json NOT NULL,
    opened_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    "end" character varying(20),
    closed_at double precision,
    closed text NOT NULL,
    said text NOT NULL
);
CREATE TABLE public.seal_keys (
    fingerprint character varying(64) NOT NULL,
    wrapped character varying(200) NOT NULL,
    under character varying(64) NOT NULL,
    offered_at double precision NOT NULL,
    seals_since double precision,
    left_at double precision,
    removed_at double precision
);
CREATE TABLE public.tasks (
    task_id character varying(80) NOT NULL,
    root_job_id character varying(80) NOT NULL,
    repo character varying(200) NOT NULL,
    title text NOT NULL,
    state character varying(20) NOT NULL,
    revision integer NOT NULL,
    reason text NOT NULL,
    next text NOT NULL,
    waits_for character varying(20) NOT NULL,
    to_retry character varying(80) NOT NULL,
    opened_at double precision NOT NULL,
    ended_at double precision,
    paused_seconds double precision DEFAULT '0'::double precision NOT NULL,
    paused_since double precision
);
CREATE TABLE public.tokens (
    name character varying(80) NOT NULL,
    scope character varying(20) NOT NULL,
    digest character varying(64) NOT NULL,
    made_at double precision NOT NULL
);
CREATE TABLE public.trees (
    root_job_id character varying(80) NOT NULL,
    host character varying(200) NOT NULL,
    start json NOT NULL,
    revision integer NOT NULL,
    state json
);
CREATE TABLE public.writers (
    root_job_id character varying(80) NOT NULL,
    run_id character varying(64) NOT NULL,
    first integer NOT NULL,
    anew boolean NOT NULL,
    shift integer NOT NULL,
    event_shift integer,
    former json NOT NULL
);
ALTER TABLE ONLY public.memory ALTER COLUMN number SET DEFAULT nextval('public.memory_number_seq'::regclass);
INSERT INTO public.agent_repos VALUES ('scout', 'acme/shop');
INSERT INTO public.agents VALUES ('scout', 'claude', '[]', NULL, NULL, NULL, NULL, '["ask"]', 'read-only', 'fresh', 1795650424.2263637, '[]', '[]');
INSERT INTO public.alembic_version VALUES ('0012');
INSERT INTO public.attempts VALUES ('job-0123456789ab', 1, 'here', '/home/runs/1', NULL, NULL, NULL, 5, 9, '{"job_id": "job-0123456789ab", "attempt": 1, "state": "succeeded"}', NULL, NULL, NULL);
INSERT INTO public.attempts VALUES ('job-0123456789ab.1', 1, 'here', '/home/runs/2', NULL, NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.checkouts VALUES ('acme/shop', 'here', '/srv/checkouts/shop', 1795650424.2071106);
INSERT INTO public.events VALUES ('job-0123456789ab-e1', 1, 'job-0123456789ab', 'job-0123456789ab', 'delegation_loop_warning', 1, 'message 1', '{}');
INSERT INTO public.hosts VALUES ('here', '0.2.0', 4, 1, 1795650424.305602, NULL, '', '', '', '[]', '', 0, NULL, NULL, '[]', 0);
INSERT INTO public.idempotency VALUES ('72a90ea3da8b5dd01bde2f27314e02e217f935182ea573a7ff9b5f5060ef996b', 'd', 'first', 1795650424.2899349, NULL);
INSERT INTO public.jobs VALUES ('job-0123456789ab', 'job-0123456789ab', NULL, NULL, 0, 'task-0123456789ab', 'acme/shop', 'scout', false, 'shell', 'ask', 'none', 'succeeded', 1, 1, '', '', '', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, false, 1795650424.3120713, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('job-0123456789ab.1', 'job-0123456789ab', 'job-0123456789ab', 'leg', 1, 'task-0123456789ab', 'acme/shop', 'scout', false, 'shell', 'ask', 'none', 'running', 1, 1, '', '', '', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, false, 1795650424.3121116, NULL, NULL, NULL, NULL);
INSERT INTO public.memory VALUES (1, 'e11d388b2ee6b42fdc012b5b1f07200dcaad7c01ae289aeefe37ad3483e0730c', NULL, 'acme/shop', 'limits', 'orders end at 100', 'limits', 'orders end at 100', 'confirmed', 'ann', NULL, 1795650424.2588892, 'ann', 1795650424.2734509, DEFAULT);
INSERT INTO public.pipelines VALUES ('nightly', 'acme/shop', true, false, 'yaml', 'name: nightly
repo: acme/shop
stages:
  - id: build
    kind: shell
    command: ["true"]
', '864cb4915e0124e5a34692d2f7ae16a3ede233042320cc3a956d9449d756e841', 1795650424.253971, 1795650424.253971);
INSERT INTO public.repos VALUES ('acme/shop', 1795650424.2071106, 'acme/shop', '', '', '', '[]', '[]');
INSERT INTO public.rounds VALUES ('job-0123456789ab-r1', 'job-0123456789ab', 'job-0123456789ab', 'job-0123456789ab', 'task-0123456789ab', 'acme/shop', 1, 'ask', 'd', 1, '[{"id": "color", "prompt": "which?", "choices": [], "job_id": "job-0123456789ab", "leg": "", "answer": null}]', '[]', '["answer", "extend"]', '["service resume job-0123456789ab answer"]', 1, 2, NULL, NULL, '', '');
INSERT INTO public.tasks VALUES ('task-0123456789ab', 'job-0123456789ab', 'acme/shop', 'look', 'awaiting_human', 1, '', '', '', '', 1, NULL, 0, NULL);
SELECT pg_catalog.setval('public.memory_number_seq', 1, true);
ALTER TABLE ONLY public.agent_repos
    ADD CONSTRAINT agent_repos_pkey PRIMARY KEY (agent, repo);
ALTER TABLE ONLY public.agent_sessions
    ADD CONSTRAINT agent_sessions_pkey PRIMARY KEY (runtime, session);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.artifact_parts
    ADD CONSTRAINT artifact_parts_pkey PRIMARY KEY (digest, number);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (job_id, attempt);
ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_pkey PRIMARY KEY (repo, host);
ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (job_id, attempt);
ALTER TABLE ONLY public.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deferrals
    ADD CONSTRAINT deferrals_pkey PRIMARY KEY (job_id, attempt, number);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (notification_id, channel);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY public.github_account
    ADD CONSTRAINT github_account_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.github_comments
    ADD CONSTRAINT github_comments_pkey PRIMARY KEY (comment_id);
ALTER TABLE ONLY public.github_deliveries
    ADD CONSTRAINT github_deliveries_pkey PRIMARY KEY (delivery_id);
ALTER TABLE ONLY public.github_facts
    ADD CONSTRAINT github_facts_pkey PRIMARY KEY (fact_id);
ALTER TABLE ONLY public.github_pages
    ADD CONSTRAINT github_pages_pkey PRIMARY KEY (url);
ALTER TABLE ONLY public.github_published
    ADD CONSTRAINT github_published_pkey PRIMARY KEY (repo);
ALTER TABLE ONLY public.github_repos
    ADD CONSTRAINT github_repos_pkey PRIMARY KEY (github);
ALTER TABLE ONLY public.github_requests
    ADD CONSTRAINT github_requests_pkey PRIMARY KEY (hour, github);
ALTER TABLE ONLY public.github_threads
    ADD CONSTRAINT github_threads_pkey PRIMARY KEY (root_job_id);
ALTER TABLE ONLY public.hosts
    ADD CONSTRAINT hosts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.kept_secrets
    ADD CONSTRAINT kept_secrets_pkey PRIMARY KEY (name, host);
ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.moves
    ADD CONSTRAINT moves_pkey PRIMARY KEY (job_id, attempt);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (notification_id);
ALTER TABLE ONLY public.pipeline_runs
    ADD CONSTRAINT pipeline_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.pipeline_stages
    ADD CONSTRAINT pipeline_stages_pkey PRIMARY KEY (run_id, stage_id);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT pipelines_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.placements
    ADD CONSTRAINT placements_pkey PRIMARY KEY (job_id, attempt);
ALTER TABLE ONLY public.repos
    ADD CONSTRAINT repos_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.review_notes
    ADD CONSTRAINT review_notes_pkey PRIMARY KEY (review_id, seq);
ALTER TABLE ONLY public.reviews
    ADD CONSTRAINT reviews_pkey PRIMARY KEY (review_id);
ALTER TABLE ONLY public.rounds
    ADD CONSTRAINT rounds_pkey PRIMARY KEY (round_id);
ALTER TABLE ONLY public.seal_keys
    ADD CONSTRAINT seal_keys_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_root_job_id_key UNIQUE (root_job_id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.trees
    ADD CONSTRAINT trees_pkey PRIMARY KEY (root_job_id);
ALTER TABLE ONLY public.writers
    ADD CONSTRAINT writers_pkey PRIMARY KEY (root_job_id);
CREATE INDEX deliveries_open ON public.deliveries USING btree (notification_id) WHERE (delivered_at IS NULL);
CREATE INDEX events_by_kind ON public.events USING btree (kind, at);
CREATE UNIQUE INDEX events_by_root ON public.events USING btree (root_job_id, seq);
CREATE INDEX github_comments_by_thread ON public.github_comments USING btree (github, number, at);
CREATE INDEX github_comments_open ON public.github_comments USING btree (at) WHERE ((state)::text = 'taken'::text);
CREATE INDEX github_deliveries_by_time ON public.github_deliveries USING btree (at);
CREATE INDEX github_facts_by_root ON public.github_facts USING btree (root_job_id);
CREATE INDEX github_facts_failed ON public.github_facts USING btree (github, number) WHERE ((state)::text = 'failed'::text);
CREATE INDEX github_facts_open ON public.github_facts USING btree (next_at) WHERE ((state)::text = 'open'::text);
CREATE INDEX github_facts_published ON public.github_facts USING btree (root_job_id) WHERE ((kind)::text = 'publish'::text);
CREATE INDEX github_facts_to_push ON public.github_facts USING btree (next_at) WHERE ((state)::text = 'push'::text);
CREATE INDEX github_threads_by_number ON public.github_threads USING btree (github, number);
CREATE INDEX github_threads_open ON public.github_threads USING btree (root_job_id) WHERE (NOT over);
CREATE INDEX idempotency_by_time ON public.idempotency USING btree (reserved_at);
CREATE INDEX ix_artifacts_used_at ON public.artifacts USING btree (used_at);
CREATE INDEX jobs_by_issue ON public.jobs USING btree (issue, queued_at) WHERE (issue IS NOT NULL);
CREATE INDEX jobs_by_preflight ON public.jobs USING btree (queued_at) WHERE (preflight_failed IS NOT NULL);
CREATE INDEX jobs_by_pull_request ON public.jobs USING btree (pull_request, queued_at) WHERE (pull_request IS NOT NULL);
CREATE INDEX jobs_by_root ON public.jobs USING btree (root_job_id);
CREATE INDEX jobs_by_spender ON public.jobs USING btree (agent, repo, model, ended_at, started_at, queued_at, input_tokens, output_tokens, cost_usd, price_assumed);
CREATE INDEX jobs_by_state ON public.jobs USING btree (state, queued_at);
CREATE INDEX jobs_by_time ON public.jobs USING btree (queued_at, job_id, root_job_id, agent, delegation_id);
CREATE INDEX memory_by_state ON public.memory USING btree (state, number);
CREATE INDEX memory_search_index ON public.memory USING gin (memory_search) WHERE ((state)::text = 'confirmed'::text);
CREATE INDEX moves_by_host ON public.moves USING btree (host, kept);
CREATE INDEX pipeline_runs_by_pipeline ON public.pipeline_runs USING btree (pipeline, started_at);
CREATE INDEX pipeline_runs_by_time ON public.pipeline_runs USING btree (started_at, run_id);
CREATE INDEX placements_by_host ON public.placements USING btree (host, at);
CREATE INDEX placements_by_repo ON public.placements USING btree (repo, host);
CREATE INDEX reviews_by_pull_request ON public.reviews USING btree (pull_request);
CREATE INDEX rounds_by_root ON public.rounds USING btree (root_job_id);
CREATE INDEX rounds_open ON public.rounds USING btree (closed_at, opened_at);
CREATE INDEX tasks_by_state ON public.tasks USING btree (state, opened_at);
ALTER TABLE ONLY public.agent_repos
    ADD CONSTRAINT agent_repos_agent_fkey FOREIGN KEY (agent) REFERENCES public.agents(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.agent_repos
    ADD CONSTRAINT agent_repos_repo_fkey FOREIGN KEY (repo) REFERENCES public.repos(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.artifact_parts
    ADD CONSTRAINT artifact_parts_digest_fkey FOREIGN KEY (digest) REFERENCES public.artifacts(digest) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_repo_fkey FOREIGN KEY (repo) REFERENCES public.repos(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_notification_id_fkey FOREIGN KEY (notification_id) REFERENCES public.notifications(notification_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.pipeline_stages
    ADD CONSTRAINT pipeline_stages_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.pipeline_runs(run_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.review_notes
    ADD CONSTRAINT review_notes_review_id_fkey FOREIGN KEY (review_id) REFERENCES public.reviews(review_id);

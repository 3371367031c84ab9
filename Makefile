# make run    a real cluster on this computer that grows and shrinks; Ctrl-C ends it
# make demo   the same without a person: scales up and down, prints a timeline
# make test   all tests, the end-to-end ones included
# make help   everything else
#
# Needs Go, make and a shell, for the tests also Python 3. No root, no Docker.

DATA    ?= .cluster
PROVIDER ?= aws
KUBERNETES ?= 1.36.4
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
VULNDB  ?= https://vuln.go.dev
SCANNED ?= bin/karpenter
# What the end-to-end tests run besides our own programs.
E2E_TOOLS = bin/moto bin/helm bin/prometheus bin/promtool bin/release-tool
# A seed that no one has seen: od pads its number with spaces, and a flag must not have them.
fresh = $(strip $(shell od -An -N3 -tu4 /dev/urandom))
GOFLAGS ?=
export GOFLAGS

# Nodes are instances of a simulated AWS, and manifests those of users of EKS. With PROVIDER=kwok
# there is no cloud: the controller makes the nodes itself. With PROVIDER=azure it is a simulated Azure,
# and PROVISION_MODE=aksscriptless has the controller make the virtual machines itself.
CLOUD = --provider $(PROVIDER) $(if $(PROVISION_MODE),--provision-mode $(PROVISION_MODE))
EXAMPLES = examples/$(PROVIDER)

.DEFAULT_GOAL := help
.PHONY: help try vet ui ui-test screens pictures recordings krew invariants release push release-test sbom run demo demo-gpu demo-helm stress disrupt size grow test check unit charts observability sandbox-test differential sim sim-aws sim-azure aws-calls day e2e e2e-on race vulncheck bench bench-wild generate contract headers prose site site-serve generate-aws clean-cluster clean build FORCE

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: build ## start the cluster in $(DATA), or continue with it, and show it live
	bin/sandbox run --data $(DATA) $(CLOUD) --controller bin/karpenter --crds api/crds --manifests $(EXAMPLES)/default

try: ## no cluster at all: the commands on a recorded one and on a simulation, with the live view; SEED=7 repeats one
	@docs/recorded/try.sh bin/karpenter-try $(SEED)

demo: build ## bring up a fresh cluster, run examples/ through it, print what happened
	bin/sandbox demo $(CLOUD) --controller bin/karpenter --crds api/crds --examples $(EXAMPLES)

demo-gpu: build ## shared GPUs, a training group, a spot interruption and missing capacity on simulated GPU instances, with prices
	@go test ./e2e/aws -run '^TestDevices$$' -count 1 -v -timeout 15m

demo-helm: build bin/helm ## the demo, with the controller installed by Helm and no other rights than its chart gives
	bin/sandbox demo $(CLOUD) --controller bin/karpenter --helm bin/helm --examples $(EXAMPLES)

stress: build ## 5,000 pods from nothing to running and back, with figures
	bin/sandbox stress $(CLOUD) --controller bin/karpenter --crds api/crds --manifests $(EXAMPLES)/default

disrupt: build ## nodes consolidated, emptied and drifted, with figures; DISRUPT='--parts drift' is one part of it
	bin/sandbox disrupt $(CLOUD) --controller bin/karpenter --crds api/crds --json bin/disrupt.json $(DISRUPT)

size: build ## what the controller needs for 1,000 and 5,000 nodes that are there; SIZE='--idle 2m'
	bin/sandbox size --provider kwok --controller bin/karpenter --crds api/crds --made bin/made --nodes 1000 --pods 10000 --json bin/size-1000.json $(SIZE)
	bin/sandbox size --provider kwok --controller bin/karpenter --crds api/crds --made bin/made --nodes 5000 --pods 100000 --cores 16 --json bin/size-5000.json $(SIZE)

grow: build ## what the controller needs while a cluster grows to 1,000 nodes; PODS=10000, SIZE='--idle 2m'
	bin/sandbox size $(CLOUD) --controller bin/karpenter --crds api/crds --pods $(or $(PODS),10000) --json bin/size.json $(SIZE)

clean-cluster: ## forget the cluster in $(DATA)
	rm -rf $(DATA)

# What make test runs: e2e waits for clocks most of the time, so the others run beside it, one after the other.
TESTS = unit charts observability sandbox-test differential release-test sim

test: build $(E2E_TOOLS) ## all tests, several at a time; shows the output of each part when it ends, and how long it took
	@MAKE='$(MAKE)' internal/parts.sh e2e '$(TESTS)'

# No cluster, and only packages whose tests take seconds. go vet has looked at them already, and half of the
# time of most is linking, which takes less without symbols.
CHECKS = ./api/... ./internal/... ./model/... ./scenario/... ./solve/fit/... ./solve/lp/... ./solve/topology/... ./world/... ./control/... ./cmd/karpenter/config/...

# The SDKs of AWS and Azure are two fifths of the source code that go vet ./... compiles. So check leaves the packages
# that need them to vet.
NEEDS_SDK = /(cloud/aws|cloud/azure|cmd/awssim|cmd/azuresim|cmd/karpenter/wiring|e2e|sim)(/|$$)|/cmd/karpenter$$

# The compiler and the linker take a quarter less processor time if they collect garbage less often.
check vet unit: export GOGC = 400

check: ## fast feedback before you commit: formatting, vet, and the tests that take seconds
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); [ -z "$$unformatted" ] || { echo "run gofmt -w on:" $$unformatted >&2; exit 1; }
	go vet $$(go list ./... | grep -vE '$(NEEDS_SDK)')
	go test -vet=off -ldflags='-s -w' $(CHECKS)

vet: ## go vet for all packages, also those that need the SDKs of AWS and Azure
	go vet ./...

unit: ## tests that need no cluster
	go test -timeout 40m -ldflags='-s -w' $$(go list ./... | grep -v '/e2e')
	cd cloud/ec2/limits && go test ./...
	cd docs/pictures && go test ./...

charts: ## what Helm makes of the charts
	cd charts && go test -trimpath ./...

observability: ## alert rules and dashboard, with Prometheus' own code
	cd deploy/observability && go test -trimpath ./...

sandbox-test: ## tests of the control plane and the simulated instances
	cd sandbox && go test -trimpath ./...

differential: ## our verdicts against those of kube-scheduler's own code, on random situations
	cd differential && go test -trimpath -count=1 ./...

invariants: ## what must hold of every plan, on situations drawn from fresh seeds, with the smallest part of each that breaks one; SEEDS=8 FIRST=1
	go test ./solve -run 'TestPlans|TestNoPod|TestBound|TestCommands|TestWhat|TestIntents|TestPreferences|TestRest' -timeout 1h -args -seeds=$(or $(SEEDS),20) -first=$(or $(FIRST),$(fresh))

# The same seeds in every run show what a change broke; seeds that no one has seen show what was always broken.
sim: ## the whole system in virtual time: random clusters, orders and faults; 300 fresh seeds, and SEEDS=300 from FIRST=0
	@go test -c -o bin/sim.test ./sim
	@cd sim && GOGC=800 ../bin/sim.test -test.run '^TestSeeds$$' -test.timeout 1h -seeds=300 -first=$(fresh)
	@cd sim && GOGC=800 ../bin/sim.test -test.run '^TestSeeds$$' -test.timeout 1h -seeds=$(or $(SEEDS),300) -first=$(or $(FIRST),0)

day: ## a steady cluster of some 50 nodes for 24 hours of virtual time: what consolidation costs and saves
	go test ./sim -run '^TestDay$$' -v -timeout 2h -hours=24

aws-calls: ## the calls to AWS that launch NODES=1000 nodes at once, and that an idle hour with them takes
	go test ./sim -run '^TestCallsToAWS$$' -v -timeout 2h -nodes=$(or $(NODES),1000)

sim-aws: ## as sim, with the AWS provider on an account in memory; SEEDS=50 FIRST=1
	go test ./sim -run '^TestAmazonSeeds$$' -timeout 1h -amazon-seeds=$(or $(SEEDS),300) -first=$(or $(FIRST),0)

sim-azure: ## as sim, with the provider for AKS on a subscription in memory; 100 fresh seeds, and SEEDS=50 from FIRST=1
	go test ./sim -run '^TestAzureSeeds$$' -timeout 1h -azure-seeds=100 -first=$(fresh)
	go test ./sim -run '^TestAzureSeeds$$' -timeout 1h -azure-seeds=$(or $(SEEDS),300) -first=$(or $(FIRST),0)

# More packages and tests at a time than processors, because they wait: for leases, for rest, for instances to boot.
e2e: build $(E2E_TOOLS) ## tests against a real control plane, and against moto, an emulator of AWS
	go test -timeout 45m -p 3 -parallel 3 -ldflags='-s -w' ./e2e/...

e2e-on: build $(E2E_TOOLS) ## the same on another release of Kubernetes: KUBERNETES=1.36.4
	./sandbox/build.sh bin/sandbox-$(KUBERNETES) $(KUBERNETES)
	SANDBOX_BIN=$(CURDIR)/bin/sandbox-$(KUBERNETES) go test -timeout 30m -p 3 -parallel 4 ./e2e/...

race: ## tests that need no cluster, with the race detector
	go test -race $$(go list ./... | grep -v '/e2e')

# Not a part of test: the database changes every day, and must not break what was not changed.
vulncheck: $(SCANNED) ## known vulnerabilities in what the program calls; VULNDB=file:///… is a copy of the database
	@case '$(VULNDB)' in file://*) test -f '$(VULNDB:file://%=%)/index/modules.json' || { echo 'there is no database at $(VULNDB): want index/modules.json in it' >&2; exit 1; };; esac
	go run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db $(VULNDB) -mode binary $(SCANNED)

bench: ## this engine and upstream's side by side; BENCH='-short' is quicker, BENCH=-list tells what there is
	cd bench && go build -o ../bin/bench . && ../bin/bench $(BENCH)

bench-wild: ## problems drawn from a new seed, ours and upstream's planner; WILD='-seed 7' repeats one, WILD=-h lists the flags
	cd bench && go build -o ../bin/bench . && ../bin/bench wild $(WILD)

generate: ## CRD manifests, deep copies and reference tables, from the code
	go generate ./api/...
	cd charts && go test -run TestDefinitions -update .
	go test -run TestSettingsTable ./cmd/karpenter/config -update
	go test -run TestFieldTables ./api/crds -update
	go test -run TestInstanceTypeTables ./cmd/karpenter -args -rewrite

contract: ## the links from the cases in docs/contract to their tests
	go test ./internal/docs -run TestContractIndex -update

headers: ## the license at the top of source files that lack it
	go test ./internal/docs -run TestLicenceHeaders -update

prose: ## words and sentences of documents, program texts, manifests and comments that readers stumble over
	go test ./internal/docs -run 'TestProse|TestWords'

site: bin/sphinx bin/mermaid/mermaid.min.js ## the documentation as a searchable site in bin/site; REPOSITORY=https://…/blob/main is where links to source files lead
	rm -rf bin/site
	bin/sphinx/bin/sphinx-build -q -W --keep-going -c site -d bin/site-doctrees . bin/site
	@! grep -rlE '(<script[^>]* src|<link[^>]* href|@import|url\()[=( "]*https?:' --include='*.html' --include='*.css' bin/site || { echo 'these files load something from another host' >&2; exit 1; }
	@echo 'open bin/site/index.html, or run make site-serve'

site-serve: site ## the same at http://127.0.0.1:8000; Ctrl-C stops it
	bin/sphinx/bin/python -m http.server 8000 --bind 127.0.0.1 --directory bin/site

generate-aws: ## descriptions, prices and limits of EC2's instance types, from AWS; needs credentials; PRICES=us-east-1,eu-west-1
	cd cloud/ec2/limits && go run . > ../limits.json.new && mv ../limits.json.new ../limits.json
	go run ./cloud/aws/generate $(if $(PRICES),-prices $(PRICES))

recordings: build ## record a real run of the sandbox, and draw from it what the documents show
	docs/recorded/record.sh docs/recorded/shop.recording
	docs/recorded/record.sh docs/recorded/busy.recording busy
	$(MAKE) screens

screens: ## draw what the documents show, from the recording; a test says when it is time to
	go test ./cmd/karpenter -run TestRecorded -rewrite

pictures: ## draw the charts of the documents from bench/results.json and docs/reliability.md; a test says when it is time to
	cd docs/pictures && go run . ..

WEB = cmd/karpenter/ui/web

# Not below $(WEB), where tests would read the documents of packages as our own.
bin/ui/node_modules: $(WEB)/package.json $(WEB)/package-lock.json
	mkdir -p bin/ui && cp $^ bin/ui && cd bin/ui && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules

ui: bin/ui/node_modules ## build the page of karpenter ui; needs Node.js, which go build does not
	cd $(WEB) && node build.mjs $(CURDIR)/bin/ui/node_modules

# Not a part of test: it needs Node.js and Chromium, which no other test does.
ui-test: bin/karpenter-commands bin/ui/node_modules ## the page in a real Chromium: accessibility, keyboard, first paint; UI=-rewrite also draws docs/screens/ui/
	cd cmd/karpenter/ui/browser && go test -count=1 -v -timeout 20m . -args -karpenter=$(CURDIR)/bin/karpenter-commands $(UI)

krew: ## the kubectl plugin for PLATFORMS and its Krew manifest in bin/krew; URL=https://… is where they will be
	deploy/krew/release.sh bin/krew '$(URL)' $(PLATFORMS)

# The control plane and our own programs build at the same time: while one downloads or links, the other compiles.
build: ## build what the other targets run
	@$(MAKE) --no-print-directory -j2 bin/kubectl bin/karpenter

bin/sandbox: FORCE
	@./sandbox/build.sh $@

bin/kubectl: bin/sandbox
	@ln -sf sandbox $@

bin/moto: FORCE
	@./internal/venv.sh e2e/moto/requirements.txt $@

bin/sphinx: FORCE
	@./internal/venv.sh site/requirements.txt $@

# Draws the diagrams of the site in the browser. One file of the package, with its checksum.
bin/mermaid/mermaid.min.js:
	@command -v npm >/dev/null || { echo 'npm is missing: the site needs Mermaid from the npm registry' >&2; exit 1; }
	@mkdir -p $(@D) && cd $(@D) && npm pack --silent mermaid@12.3.0 >/dev/null && tar -xzf mermaid-12.3.0.tgz --strip-components=2 package/dist/mermaid.min.js
	@cd $(@D) && rm mermaid-12.3.0.tgz && echo '336df803d87a38b70a01e736e666c8f7601d2ce42f5e47c8fafe5d721074b9a3  mermaid.min.js' | sha256sum --check --quiet || { rm mermaid.min.js; exit 1; }

# Helm changes with the charts' module only; building it takes minutes.
bin/helm: charts/go.mod charts/go.sum
	cd charts && go build -trimpath -o ../$@ helm.sh/helm/v3/cmd/helm

# So are these, with the module of the alert rules.
bin/prometheus bin/promtool: deploy/observability/go.mod deploy/observability/go.sum
	cd deploy/observability && go build -trimpath -o ../../$@ github.com/prometheus/prometheus/cmd/$(@F)

# Both in one build, which compiles what they share once. See sandbox/build.sh about GOGC.
bin/karpenter: FORCE
	@GOGC=400 go build $$(go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' -deps ./cmd/karpenter ./cmd/awssim ./cmd/azuresim | grep ^karpenter/)
	@go build -o bin/ ./cmd/karpenter ./cmd/awssim ./cmd/azuresim

bin/awssim bin/azuresim: bin/karpenter

bin/karpenter-commands: FORCE
	@CGO_ENABLED=0 go build -tags nocontroller -o $@ ./cmd/karpenter

release: bin/release-tool ## binaries for PLATFORMS, charts, image, SBOM and checksums in bin/release; needs no Docker
	rm -rf bin/release
	cd release && ../bin/release-tool build --platforms $(PLATFORMS)
	cd charts && SOURCE_DATE_EPOCH=0 go run -trimpath ./sbom ../bin/release/karpenter-linux-amd64 .. > ../bin/release/karpenter.spdx.json
	cd bin/release && sha256sum karpenter.spdx.json >> SHA256SUMS

push: bin/release-tool ## push the image and the charts of bin/release to REGISTRY, such as registry.example.com/team
	cd release && ../bin/release-tool push $(REGISTRY)

release-test: bin/helm ## tests of the release: the same bytes from two folders, and what a registry gives back
	cd release && go test -timeout 30m ./...

bin/release-tool: FORCE
	cd release && go build -trimpath -o ../$@ .

sbom: bin/karpenter ## what the program is made of and under which licenses, as SPDX
	cd charts && go run -trimpath ./sbom ../bin/karpenter .. > ../bin/karpenter.spdx.json

clean: clean-cluster ## forget everything that was built here
	rm -rf bin

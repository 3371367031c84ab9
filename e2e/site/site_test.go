// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"karpenter/e2e/harness"
	"karpenter/internal/docs"
)

// shared is set once, and used by all tests.
var shared = harness.NewShared(harness.Options{})

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

const root = "../.."

// site is the documents beside a cluster that has what they speak of.
type site struct {
	*testing.T
	pages []docs.Page
	env   []string
}

func open(t *testing.T) *site {
	t.Helper()
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cluster := shared.Cluster(t)
	return &site{t, pages, append(os.Environ(),
		"PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+cluster.Kubeconfig, "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"CLUSTER_NAME=my-cluster", "IMAGE=registry.example.com/karpenter/controller", "KARPENTER_NAMESPACE=kube-system",
	)}
}

// sh runs a command line in the project's folder.
func (s *site) sh(line, stdin string) (string, error) {
	run := exec.CommandContext(s.Context(), "sh", "-c", line)
	run.Dir, run.Env, run.Stdin = root, s.env, strings.NewReader(stdin)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	err := run.Run()
	return out.String(), err
}

func (s *site) must(line, stdin string) {
	s.Helper()
	if out, err := s.sh(line, stdin); err != nil {
		s.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// objects are what the commands name; the names in capitals that documents use
// stand for "name".
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: ci}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: amazon-vpc-cni, namespace: kube-system}
---
apiVersion: v1
kind: Node
metadata: {name: name, labels: {karpenter.sh/provisioner-name: name, eks.amazonaws.com/nodegroup: name, karpenter.sh/nodepool: name}}
---
apiVersion: v1
kind: Pod
metadata: {name: name, namespace: default}
spec: {containers: [{name: main, image: registry.k8s.io/pause:3.10}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cluster-autoscaler, namespace: kube-system}
spec:
  selector: {matchLabels: {app: cluster-autoscaler}}
  template:
    metadata: {labels: {app: cluster-autoscaler}}
    spec:
      nodeSelector: {eks.amazonaws.com/nodegroup: name}
      containers: [{name: main, image: registry.k8s.io/pause:3.10}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: karpenter-leader-election, namespace: kube-system}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: name}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: subnet-0123456789abcdef0}]
  securityGroupSelectorTerms: [{id: sg-0123456789abcdef0}]
---
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: {}
---
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: name}
spec: {}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: name}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: name}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: edge}
spec: {replicas: 3, template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: name}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: name}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: base}
spec: {replicas: 3, template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: name}}}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: name, labels: {karpenter.sh/nodepool: name}}
spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: name}}
`

// furnish makes the objects and files that the commands name, and has the objects ready
// and rolled out.
func (s *site) furnish() {
	s.must("kubectl apply -f -", objects)
	s.must("tee $HOME/values.yaml $HOME/azure.yaml", "settings: {clusterName: my-cluster}")
	s.must("cat > $HOME/baseline.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: karpenter-baseline, namespace: kube-system}}")
	s.must("cat > $HOME/nodepool.yaml", "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}}")
	s.must("kubectl apply -f examples/inflate.yaml -f examples/aws/default", "")
	s.must("helm upgrade --install --take-ownership karpenter-crd charts/karpenter-crd -n kube-system", "")
	s.must("helm upgrade --install karpenter charts/karpenter -n kube-system --skip-crds --set settings.clusterName=my-cluster", "")
	s.must("helm upgrade karpenter charts/karpenter -n kube-system --skip-crds --set settings.clusterName=my-cluster", "")
	for _, object := range []string{"nodepool/name", "nodepool/base", "nodepool/edge", "nodepool/general", "nodepool/default", "ec2nodeclass/default", "aksnodeclass/default"} {
		var conditions []string
		for _, kind := range []string{"RolledOut", "Ready"} {
			conditions = append(conditions, fmt.Sprintf(`{"type":%[1]q,"status":"True","reason":%[1]q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, kind))
		}
		s.must(fmt.Sprintf(`kubectl patch %s --subresource status --type merge -p '{"status":{"conditions":[%s]}}'`, object, strings.Join(conditions, ",")), "")
	}
}

// unfinished are commands of which a document shows the beginning only.
func unfinished(c docs.Command) bool {
	words := slices.DeleteFunc(strings.Fields(c.Text), func(word string) bool { return strings.HasPrefix(word, "-") })
	return c.Elided() || len(words) <= 2 || c.Text == "kubectl describe pod" || c.Text == "kubectl rollout restart"
}

// named puts names in place of those in capitals, the chart for a chart, and the files
// of furnish for those that a reader has.
func named(text string) string {
	text = regexp.MustCompile(`(--values|-f) (values|baseline|azure|nodepool)\.yaml`).ReplaceAllString(text, "$1 $$HOME/$2.yaml")
	text = regexp.MustCompile(`\b(NAME|NODE|GROUP)\b`).ReplaceAllString(text, "name")
	text = regexp.MustCompile(`\bNAMESPACE\b`).ReplaceAllString(text, "default")
	text = regexp.MustCompile(`\bCHART\b`).ReplaceAllString(text, "charts/karpenter --set settings.clusterName=my-cluster")
	return strings.ReplaceAll(text, "--kubeconfig .cluster/kubeconfig ", "")
}

// verb returns the first word that is a command of the program's.
func verb(text string, of ...string) string {
	for _, word := range strings.Fields(text) {
		if slices.Contains(of, word) {
			return word
		}
	}
	return ""
}

// TestKubectl runs every kubectl command of the documents. What needs a kubelet,
// which is simulated here, is only read by kubectl.
func TestKubectl(t *testing.T) {
	s := open(t)
	s.furnish()
	ran, read := 0, 0
	for _, p := range s.pages {
		for _, c := range p.Commands("kubectl", "sed") {
			if unfinished(c) {
				continue
			}
			line := named(c.Text)
			switch verb(line, "get", "describe", "wait", "logs", "top", "port-forward", "exec", "scale", "apply", "annotate",
				"label", "taint", "patch", "delete", "cordon", "uncordon", "drain", "create", "rollout", "auth", "explain") {
			case "get", "describe", "wait", "auth", "explain", "rollout":
				ran++
			case "logs", "top", "port-forward", "exec":
				line += " --help" // flags are read, and nothing is done
				read++
			case "":
				t.Errorf("%s:%d: %s: a command that this test does not know", c.Page, c.Line, c.Text)
				continue
			default:
				line += " --dry-run=server"
				ran++
			}
			if out, err := s.sh(line, ""); err != nil {
				t.Errorf("%s:%d: %s: %v\n%s", c.Page, c.Line, line, err, out)
			}
		}
	}
	t.Logf("kubectl: %d run, %d only read", ran, read)
	if ran < 40 {
		t.Errorf("only %d commands", ran)
	}
}

// TestHelm runs every Helm command of the documents as a dry run.
func TestHelm(t *testing.T) {
	s := open(t)
	s.furnish()
	ran := 0
	for _, p := range s.pages {
		for _, c := range p.Commands("helm") {
			if unfinished(c) {
				continue
			}
			line := regexp.MustCompile(`\s+`).ReplaceAllString(named(c.Text), " ")
			switch verb(line, "upgrade", "install", "template", "rollback", "uninstall", "lint") {
			case "upgrade", "install":
				line += " --dry-run=server"
			case "rollback", "uninstall":
				line += " --dry-run"
			}
			if !strings.Contains(line, "-n ") && !strings.Contains(line, "--namespace") && !strings.Contains(line, "|") {
				line += " --namespace kube-system"
			}
			ran++
			if out, err := s.sh(line, ""); err != nil {
				t.Errorf("%s:%d: %s: %v\n%s", c.Page, c.Line, line, err, out)
			}
		}
	}
	t.Logf("helm: %d run", ran)
	if ran < 5 {
		t.Errorf("only %d commands", ran)
	}
}

// gated is an API that Kubernetes serves only with a feature gate, which the sandbox
// has not set.
const gated = "apiVersion: scheduling.k8s.io/v1beta1"

// TestManifests has the API server judge every manifest that a document shows,
// and those of the folders they name.
func TestManifests(t *testing.T) {
	s := open(t)
	s.must("kubectl apply -f -", objects)
	s.must("kubectl delete nodepools --all", "") // some have a name of the examples'
	shown := map[string]string{}
	for _, p := range s.pages {
		for _, b := range p.Blocks {
			if b.Language == "yaml" && strings.Contains(b.Text, "apiVersion:") {
				shown[fmt.Sprintf("%s:%d", p.Path, b.Line)] = b.Text
			}
		}
	}
	if len(shown) < 8 {
		t.Errorf("only %d manifests", len(shown))
	}
	for where, text := range shown {
		documents := slices.DeleteFunc(strings.Split(text, "\n---\n"), func(d string) bool { return strings.Contains(d, gated) })
		if len(documents) == 0 {
			continue
		}
		text = strings.Join(documents, "\n---\n")
		if out, err := s.sh("kubectl apply --dry-run=server --validate=strict -f -", text); err != nil {
			t.Errorf("%s: %v\n%s", where, err, out)
		}
	}
	s.must("kubectl apply --dry-run=server --validate=strict -R -f examples -f docs/migration/node-group.yaml", "")
}

// TestSandbox has the sandbox read every command of its own that a document
// shows.
func TestSandbox(t *testing.T) {
	s := open(t)
	read := 0
	for _, p := range s.pages {
		for _, c := range p.Commands("sandbox") {
			if unfinished(c) {
				continue
			}
			read++
			if out, err := s.sh("bin/"+strings.TrimPrefix(c.Text, "bin/")+" --help", ""); err != nil {
				t.Errorf("%s:%d: %s: %v\n%s", c.Page, c.Line, c.Text, err, out)
			}
		}
	}
	t.Logf("sandbox: %d read", read)
	if read < 4 {
		t.Errorf("only %d commands", read)
	}
}

// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
)

// Checks judges the facts.
func Checks(f *Facts) []Check {
	var out []Check
	for _, check := range []func(*Facts) Check{
		crdCheck, kubernetesCheck, leaderCheck, deploymentCheck, watchesCheck, permissionsCheck, queueCheck, offeringsCheck, pricesCheck, spotRoleCheck, poolsCheck, limitsCheck, classesCheck,
		claimsCheck, nodesCheck, driftCheck, drainCheck, pendingCheck, eventsCheck, upgradeCheck,
	} {
		out = append(out, check(f))
	}
	return out
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Verdict: OK, Summary: fmt.Sprintf(format, args...)}
}

// unread is the check of what could not be read.
func unread(name string, err error) Check {
	c := Check{Name: name, Verdict: Skipped, Summary: firstLine(err)}
	if forbidden(err) {
		c.Remedy = "An administrator can let you read it: kubectl create clusterrolebinding NAME --clusterrole=" + situation.Viewer + " --user=USER"
	}
	return c
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func forbidden(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsForbidden(err)
}

func crdCheck(f *Facts) Check {
	const name = "CRDs"
	var missing, other []string
	classes := 0
	for _, crd := range append(crdNames(), classCRDs()...) {
		got := f.CRDs[crd]
		switch {
		case got.err != nil:
			return unread(name, got.err)
		case got.value == nil && slices.Contains(crdNames(), crd):
			missing = append(missing, crd)
		case got.value == nil:
		case !sameSchema(got.value):
			other = append(other, crd)
			fallthrough
		default:
			if slices.Contains(classCRDs(), crd) {
				classes++
			}
		}
	}
	if classes == 0 {
		missing = append(missing, strings.Join(classCRDs(), " or "))
	}
	switch {
	case len(missing) > 0:
		return Check{name, Failure, "not installed: " + strings.Join(missing, ", "), nil,
			"Install them: helm upgrade --install karpenter-crd CHART"}
	case len(other) > 0:
		return Check{name, Warning, "not the version of this program: " + strings.Join(other, ", "), nil,
			"Upgrade them with the controller: helm upgrade --install karpenter-crd CHART"}
	}
	return ok(name, "installed, version v1")
}

// sameSchema reports whether the cluster has the CRD that this program was built with. A
// recording has no schemas, so nothing is known of them.
func sameSchema(got *apiextensionsv1.CustomResourceDefinition) bool {
	if len(got.Spec.Versions) > 0 && got.Spec.Versions[0].Schema == nil {
		return true
	}
	manifests, err := crds.Manifests()
	if err != nil {
		return true
	}
	want := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(manifests[got.Spec.Group+"_"+got.Spec.Names.Plural+".yaml"], want); err != nil {
		return true
	}
	schema := func(crd *apiextensionsv1.CustomResourceDefinition) string {
		if len(crd.Spec.Versions) == 0 {
			return ""
		}
		text, err := json.Marshal(crd.Spec.Versions[0].Schema)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return schema(got) == schema(want)
}

func kubernetesCheck(f *Facts) Check {
	if f.Kubernetes == "" {
		return Check{Name: "Kubernetes", Verdict: Skipped, Summary: "the version of the API server is not known"}
	}
	return ok("Kubernetes", "%s", f.Kubernetes)
}

func leaderCheck(f *Facts) Check {
	const name = "Leader"
	if f.Leases.err != nil {
		return unread(name, f.Leases.err)
	}
	newest := ""
	var renewed time.Time
	for _, l := range f.Leases.value {
		if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil {
			continue
		}
		if l.Spec.RenewTime.After(renewed) {
			holder, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
			newest, renewed = l.Namespace+"/"+holder, l.Spec.RenewTime.Time
		}
	}
	const remedy = "See why no replica leads: kubectl logs -A -l app.kubernetes.io/name=karpenter --prefix --tail=50"
	switch age := f.Now.Sub(renewed).Round(time.Second); {
	case newest == "":
		return Check{name, Failure, "no replica holds the lease " + leaseName, nil, remedy}
	case age > time.Minute:
		return Check{name, Failure, fmt.Sprintf("%s held the lease, and last renewed it %s ago", newest, age), nil, remedy}
	default:
		return ok(name, "%s, renewed the lease %s ago", newest, max(age, 0))
	}
}

func deploymentCheck(f *Facts) Check {
	const name = "Replicas"
	if f.Deployments.err != nil {
		return unread(name, f.Deployments.err)
	}
	for _, d := range f.Deployments.value {
		if d.Labels["app.kubernetes.io/name"] != "karpenter" {
			continue
		}
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		where := fmt.Sprintf("%d of %d ready in Deployment %s/%s", d.Status.ReadyReplicas, want, d.Namespace, d.Name)
		switch {
		case want == 0:
			return Check{name, Warning, where, nil, fmt.Sprintf("Scale it up, unless the controller runs elsewhere: kubectl -n %s scale deployment %s --replicas=2", d.Namespace, d.Name)}
		case d.Status.ReadyReplicas < want:
			return Check{name, Failure, where, nil, fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/name=karpenter", d.Namespace)}
		case want == 1:
			return Check{name, Warning, where, nil, "Run two replicas, so that another takes over when a node fails"}
		}
		return ok(name, "%s", where)
	}
	return Check{Name: name, Verdict: Skipped, Summary: "found no Deployment labeled app.kubernetes.io/name=karpenter; the controller runs elsewhere"}
}

func offeringsCheck(f *Facts) Check {
	const name = "Offerings"
	switch {
	case f.Offerings.err != nil && forbidden(f.Offerings.err):
		return unread(name, f.Offerings.err)
	case f.Offerings.err != nil:
		return Check{name, Failure, firstLine(f.Offerings.err), nil, "See whether the leader may update the ConfigMap: kubectl logs -A -l app.kubernetes.io/name=karpenter --prefix | grep " + situation.Name}
	case f.Situation.err != nil:
		return unread(name, f.Situation.err)
	}
	var none []string
	types, available, all := map[string]bool{}, 0, 0
	for _, p := range f.Situation.value.Snapshot.Pools {
		if len(p.Types) == 0 && p.Unavailable == "" {
			none = append(none, p.Name)
		}
		for _, t := range p.Types {
			if types[t.Name] {
				continue
			}
			types[t.Name] = true
			for _, o := range t.Offerings {
				all++
				if o.Available {
					available++
				}
			}
		}
	}
	summary := fmt.Sprintf("%s, %d of %s available", counted(len(types), "instance type"), available, counted(all, "offering"))
	age := f.Now.Sub(f.Offerings.value).Round(time.Minute)
	if !f.Offerings.value.IsZero() {
		summary += fmt.Sprintf(", last changed %s ago", age)
	}
	switch {
	case len(none) > 0:
		return Check{name, Failure, "no instance types for NodePool " + strings.Join(none, ", "), nil, "kubectl describe nodepool " + none[0] + ", and its node class"}
	case all > 0 && available == 0:
		return Check{name, Failure, summary, nil, "Allow more zones, instance types or capacity types in the NodePools"}
	}
	return ok(name, "%s", summary)
}

func pendingCheck(f *Facts) Check {
	const name = "Pending pods"
	if f.Situation.err != nil {
		return unread(name, f.Situation.err)
	}
	waiting, stuck := 0, 0
	for _, p := range f.Situation.value.Snapshot.Pending {
		for _, pod := range p.Pods {
			if pod.Buffer == "" && pod.From == "" {
				waiting++
			}
		}
	}
	causes := map[string][]string{}
	for i := range f.Plan.Verdicts {
		v := &f.Plan.Verdicts[i]
		for _, p := range v.Pods {
			if p.Buffer == "" {
				stuck++
				causes[cause(v)] = append(causes[cause(v)], p.Key())
			}
		}
	}
	switch {
	case waiting == 0:
		return ok(name, "none waits for a node")
	case stuck == 0:
		return ok(name, "%s for nodes that are planned or on their way", counted(waiting, "wait"))
	}
	c := Check{Name: name, Verdict: Warning, Summary: fmt.Sprintf("no node can be launched for %s", counted(stuck, "pod"))}
	first := ""
	for _, k := range slices.SortedFunc(maps.Keys(causes), func(a, b string) int { return cmp.Or(len(causes[b])-len(causes[a]), cmp.Compare(a, b)) }) {
		first = cmp.Or(first, causes[k][0])
		c.Details = append(c.Details, fmt.Sprintf("%s: %s", counted(len(causes[k]), "pod"), k))
	}
	namespace, pod, _ := strings.Cut(first, "/")
	c.Remedy = fmt.Sprintf("karpenter explain pod %s -n %s", pod, namespace)
	return c
}

// cause is what left a pod without offerings, in the pool that came nearest.
func cause(v *model.Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	best := "there is no NodePool"
	steps := -1
	for _, p := range v.Pools {
		if len(p.Steps) > steps {
			steps = len(p.Steps)
			best = "NodePool " + p.Pool + ": " + p.Reason
			if steps > 0 {
				best = "NodePool " + p.Pool + " has no offering after " + p.Steps[steps-1].Constraint
			}
		}
	}
	return best
}

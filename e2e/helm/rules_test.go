// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is something that the API server was asked to do.
type request struct {
	verb, group, resource string // resource/subresource
	namespace, name       string
}

func (r request) String() string {
	out := r.verb + " " + r.resource
	if r.group != "" {
		out += "." + r.group
	}
	if r.namespace != "" || r.name != "" {
		out += " " + r.namespace + "/" + r.name
	}
	return out
}

// permission is the least part of a rule.
type permission struct {
	role      string
	namespace string // "" = all
	verb      string
	group     string
	resource  string
	name      string // "" = all
}

func (p permission) String() string {
	return fmt.Sprintf("role %s: %s", p.role, request{p.verb, p.group, p.resource, p.namespace, p.name})
}

// allows is what RBAC says.
func (p permission) allows(r request) bool {
	return p.verb == r.verb && p.group == r.group && p.resource == r.resource &&
		(p.namespace == "" || p.namespace == r.namespace) && (p.name == "" || p.name == r.name)
}

// permissions returns what the service account is allowed, as small as it can be
// taken apart.
func (i *installation) permissions(account string) []permission {
	i.Helper()
	var out []permission
	mine := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace && s.Name == account
		})
	}
	everywhere, inOne := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	i.list(everywhere)
	i.list(inOne)
	for _, b := range everywhere.Items {
		if mine(b.Subjects) {
			role := &rbacv1.ClusterRole{}
			i.get(client.ObjectKey{Name: b.RoleRef.Name}, role)
			out = append(out, apart(role.Name, "", role.Rules)...)
		}
	}
	for _, b := range inOne.Items {
		if mine(b.Subjects) {
			role := &rbacv1.Role{}
			i.get(client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, role)
			out = append(out, apart(role.Name, b.Namespace, role.Rules)...)
		}
	}
	return out
}

func apart(role, namespace string, rules []rbacv1.PolicyRule) []permission {
	var out []permission
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, permission{role, namespace, verb, group, resource, name})
					}
				}
			}
		}
	}
	return out
}

// serves reports whether the API server has what the permission is about. Karpenter
// reads PodGroups only where there are some.
func (i *installation) serves(p permission) bool {
	i.Helper()
	kind, _, _ := strings.Cut(p.resource, "/")
	_, err := i.Client.RESTMapper().ResourcesFor(schema.GroupVersionResource{Group: p.group, Resource: kind})
	if err != nil && !meta.IsNoMatchError(err) {
		i.Fatal(err)
	}
	return err == nil
}

var recorded = regexp.MustCompile(`^karpenter-record-\d$`)

// useless returns the permissions without which every request would still be
// allowed.
//
// The ConfigMaps of the record are written in turn, one until it is full, so a
// request for one of them shows the use of all.
func useless(all []permission, requests []request) []permission {
	var out []permission
	for n, p := range all {
		needed := slices.ContainsFunc(requests, func(r request) bool {
			if recorded.MatchString(p.name) && recorded.MatchString(r.name) {
				r.name = p.name
			}
			return p.allows(r) && !slices.ContainsFunc(slices.Concat(all[:n], all[n+1:]), func(other permission) bool { return other.allows(r) })
		})
		if !needed {
			out = append(out, p)
		}
	}
	return out
}

// event is what is read of a line of the API server's audit log.
type event struct {
	User      struct{ Username string }
	Verb      string
	ObjectRef struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	RequestURI     string
	ResponseStatus struct {
		Code    int
		Message string
	}
	Annotations map[string]string
}

// requests returns what the service account has asked of the API server, each
// once, and what it was denied.
func (i *installation) requests(account string) (asked []request, refused []string) {
	i.Helper()
	seen := map[request]bool{}
	for _, e := range lines[event](i.T, surroundings.audit, i.since) {
		if e.User.Username != "system:serviceaccount:"+namespace+":"+account {
			continue
		}
		if e.Annotations["authorization.k8s.io/decision"] != "allow" || e.ResponseStatus.Code == 403 || e.ResponseStatus.Code == 401 {
			refused = append(refused, fmt.Sprintf("%s %s: %d %s", e.Verb, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message))
		}
		o := e.ObjectRef
		if o.Resource == "" || strings.Contains(e.Annotations["authorization.k8s.io/reason"], `of ClusterRole "system:`) {
			continue // the API server's own rules for everyone
		}
		if o.Subresource != "" {
			o.Resource += "/" + o.Subresource
		}
		if e.Verb == "create" && o.Subresource == "" {
			o.Name = "" // the authorizer does not see it
		}
		seen[request{e.Verb, o.APIGroup, o.Resource, o.Namespace, o.Name}] = true
	}
	for r := range seen {
		asked = append(asked, r)
	}
	slices.SortFunc(asked, func(a, b request) int { return cmp.Compare(a.String(), b.String()) })
	slices.Sort(refused)
	return asked, slices.Compact(refused)
}

// may asks the API server whether the service account may do something.
func (i *installation) may(account string, r request) bool {
	i.Helper()
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + namespace + ":" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Namespace: r.namespace, Name: r.name,
		},
	}}
	if err := i.Client.Create(i.Context(), review); err != nil {
		i.Fatal(err)
	}
	return review.Status.Allowed
}

// prove shows that the service account was denied nothing, has no permission
// of the roles without a use, and no way to secrets.
func (i *installation) prove(account string, roles ...string) {
	i.Helper()
	asked, refused := i.requests(account)
	if len(asked) < 20 {
		i.Fatalf("the audit log has only %d requests", len(asked))
	}
	for _, r := range refused {
		i.Errorf("refused: %s", r)
	}
	asked = append(asked, admission(asked)...)
	all := i.permissions(account)
	tried := 0
	for _, p := range all {
		if slices.Contains(roles, p.role) {
			tried++
		}
	}
	for _, p := range useless(all, asked) {
		if slices.Contains(roles, p.role) && i.serves(p) {
			i.Errorf("%v has no use", p)
		}
	}
	if tried == 0 {
		i.Fatalf("there are no roles %v", roles)
	}
	for _, r := range asked {
		ours := slices.ContainsFunc(all, func(p permission) bool { return p.allows(r) })
		if theirs := i.may(account, r); !ours || !theirs {
			i.Errorf("%v: allowed by the rules %t, by the API server %t", r, ours, theirs)
		}
	}
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		for _, where := range []string{"", namespace, "default"} {
			if r := (request{verb, "", "secrets", where, ""}); i.may(account, r) {
				i.Errorf("%s may %v", account, r)
			}
		}
	}
	i.Logf("%d requests of %d kinds; %d permissions, each taken away in turn", len(asked), kinds(asked), tried)
}

// admission returns what admission checks for requests beside the authorizer:
// OwnerReferencesPermissionEnforcement lets only those name an owner that must
// not be deleted first who may set the owner's finalizers.
func admission(asked []request) []request {
	var out []request
	for _, r := range asked {
		switch {
		case r.verb == "create" && r.resource == "nodeclaims":
			out = append(out, request{"update", "karpenter.sh", "nodepools/finalizers", "", ""})
		case r.verb == "patch" && r.resource == "nodes":
			out = append(out, request{"update", "karpenter.sh", "nodeclaims/finalizers", "", ""})
		}
	}
	return out
}

func kinds(all []request) int {
	seen := map[request]bool{}
	for _, r := range all {
		r.name, r.namespace = "", ""
		seen[r] = true
	}
	return len(seen)
}

func (i *installation) list(into client.ObjectList) {
	i.Helper()
	if err := i.Client.List(i.Context(), into); err != nil {
		i.Fatal(err)
	}
}

func (i *installation) get(key client.ObjectKey, into client.Object) {
	i.Helper()
	if err := i.Client.Get(i.Context(), key, into); err != nil {
		i.Fatal(err)
	}
}

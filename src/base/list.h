// SPDX-License-Identifier: Apache-2.0
/* list.h — intrusive doubly linked lists; a node is a member of what it links. */
#pragma once

#include <stdbool.h>

#include "base/own.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_after(struct list *at, struct list *node)
{
    node->prev = at;
    node->next = at->next;
    at->next->prev = node;
    at->next = node;
}

static inline void list_add(struct list *head, struct list *node) /* at the tail */
{
    list_insert_after(head->prev, node);
}

static inline void list_push(struct list *head, struct list *node) /* at the front */
{
    list_insert_after(head, node);
}

/* A removed node links to itself, so removing it again does nothing. */
static inline void list_del(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define LIST_FIRST(head, type, member)                                                             \
    (list_empty(head) ? NULL : container_of((head)->next, type, member))

/* The current entry may be removed inside the loop; its neighbours may not. */
#define LIST_EACH(var, head, type, member)     LIST_EACH_(var, head, type, member, __COUNTER__)
#define LIST_EACH_(var, head, type, member, n) LIST_EACH__(var, head, type, member, n)
#define LIST_EACH__(var, head, type, member, n)                                                    \
    for (struct list *list_at_##n = (head)->next, *list_next_##n = list_at_##n->next;              \
         list_at_##n != (head); list_at_##n = list_next_##n, list_next_##n = list_at_##n->next)    \
        for (type *var = container_of(list_at_##n, type, member); var; var = NULL)

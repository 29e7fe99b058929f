// SPDX-License-Identifier: Apache-2.0
/* row.h — short words for tables of struct wire_field; for the files that hold tables.
 *
 * OF names the struct of the members: #define OF wire_run. Fields that live in a tree have no
 * offset: their table redefines AT to the name alone. */
#pragma once

#include "wire/field.h"

/* clang-format off */
#define AT(member)           .name = #member, .offset = offsetof(struct OF, member)
#define NEED_STR(member)     {AT(member), .kind = WIRE_STR, .flags = WIRE_REQUIRED}
#define TEXT(member, value)  {AT(member), .kind = WIRE_STR, .text = value}
#define NULL_STR(member)     {AT(member), .kind = WIRE_STR, .flags = WIRE_NULLABLE}
#define FLAG(member, value)  {AT(member), .kind = WIRE_BOOL, .number = value}
#define INT(member, value)   {AT(member), .kind = WIRE_INT, .number = value}
#define NULL_INT(member)     {AT(member), .kind = WIRE_OPT_INT, .flags = WIRE_NULLABLE}
#define DOUBLE(member)       {AT(member), .kind = WIRE_DOUBLE}
#define NULL_LINE(member)    {AT(member), .kind = WIRE_LINE, .flags = WIRE_NULLABLE}
#define LIST(member, more)   {AT(member), .kind = WIRE_LIST, .flags = more}
#define STRS(member, more)   {AT(member), .kind = WIRE_LIST, .of = WIRE_STR, .flags = more}
#define INTS(member, more)   {AT(member), .kind = WIRE_LIST, .of = WIRE_INT, .flags = more}
#define OBJECTS(member)      {AT(member), .kind = WIRE_LIST, .of = WIRE_OBJECT}
#define OBJECT(member, more) {AT(member), .kind = WIRE_OBJECT, .flags = more}
#define MAP(member, kind_)   {AT(member), .kind = WIRE_OBJECT, .of = kind_}
#define GROUP(member)        {AT(member), .kind = WIRE_GROUP, .group = &member##_fields}
#define GROUPS(member, rows) {AT(member), .kind = WIRE_GROUPS, .group = rows}
#define RISK                 {AT(security_risk), .kind = WIRE_RISK, .number = WIRE_RISK_UNKNOWN}
#define CONFIRMATION                                                                               \
    {AT(confirmation_state), .old_name = "is_confirmed", .kind = WIRE_STR, .text = "confirmed"}
/* clang-format on */

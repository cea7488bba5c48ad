%token NUMBER
%left '+' '-'
%left '*' '/'
%%
lines: | lines expression '\n';
expression: NUMBER | expression '+' expression | expression '-' expression | expression '*' expression | '(' expression ')';
%%
